"""``meada bench``: run the benchmarks of a source checkout (they are not part of the installed package)."""

import os
import subprocess
import sys
from pathlib import Path

import typer

from meada.errors import MeadaError

SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
SOURCE = Path(__file__).parents[2]  # ``src`` of a checkout, or site-packages


def bench(context: typer.Context) -> None:
    """Compare speed with the published training loop. Needs a source checkout; see `meada bench --help` there.

    Example: meada bench --quick --case maximise-lenet --json
    """
    root = checkout(SOURCE.parent, Path.cwd())
    paths = [str(root), str(root / "src"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-m", "benchmarks", *context.args]
    raise typer.Exit(subprocess.run(command, env=environment, check=False).returncode)


def checkout(*candidates: Path) -> Path:
    """The first folder with ``benchmarks/`` and ``src/meada/`` in it."""
    for root in candidates:
        if (root / "benchmarks" / "__main__.py").is_file() and (root / "src" / "meada").is_dir():
            return root
    raise MeadaError(
        "meada bench must run from a source checkout (the benchmarks are not installed with the package), "
        f"got {candidates[-1]}; clone the repository, cd into it and run `python -m benchmarks`"
    )
