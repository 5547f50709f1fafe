"""Entry point of ``python -m benchmarks``; errors are reported as ``meada`` reports them."""

import typer

from benchmarks.command import bench
from meada.cli.main import run_app

app = typer.Typer(pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]})
app.command(name="bench")(bench)

if __name__ == "__main__":
    run_app(app)
