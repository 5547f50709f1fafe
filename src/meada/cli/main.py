"""The command line: one file a verb; torch is imported inside the verbs, so help is quick."""

import sys

import typer

from meada.cli import (
    bench,
    corrupt,
    data,
    doctor,
    evaluate,
    export,
    inspect,
    listing,
    perturb,
    predict,
    quickstart,
    report,
    reproduce,
    robustify,
    sweep,
    train,
    watch,
)
from meada.cli.quick import answer_typos, missing
from meada.errors import MeadaError
from meada.machine.allocator import keep_freed_memory

app = typer.Typer(
    name="meada",
    help="Train image classifiers that survive data they have never seen.",
    epilog="First steps: meada quickstart | meada list | meada train digits/meada --out runs/meada",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(quickstart.quickstart)
app.command("list")(listing.listing)
app.add_typer(data.app, name="data")
app.command()(train.train)
app.command()(evaluate.evaluate)
app.command()(reproduce.reproduce)
app.command()(sweep.sweep)
app.command()(report.report)
app.command()(robustify.robustify)
app.command()(predict.predict)
app.command()(export.export)
app.command()(perturb.perturb)
app.command()(watch.watch)
app.command()(corrupt.corrupt)
app.command()(inspect.inspect)
app.command(context_settings=bench.SETTINGS)(bench.bench)
app.command()(doctor.doctor)
answer_typos(app)


@app.callback(invoke_without_command=True)
def options(version: bool = typer.Option(False, "--version", help="Print the version.")) -> None:
    if version:
        from meada import __version__

        typer.echo(f"meada {__version__}")
        raise typer.Exit()


def main() -> None:
    run_app(app)


def run_app(chosen: typer.Typer) -> None:
    """Bad input is one sentence and exit code 2; an interrupt is 130; neither is a traceback."""
    keep_freed_memory()
    try:
        chosen()
    except MeadaError as error:
        _stop(str(error), 2)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _stop(f"{where}{error.strerror or error}", 2)
    except KeyboardInterrupt:
        _stop("interrupted", 130)
    except ModuleNotFoundError as error:
        _stop(missing(error), 2)


def _stop(sentence: str, code: int) -> None:
    print(f"meada: {sentence}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
