"""``python -m benchmarks``: compare speed with the published training loop and with the machine's peak."""

import json
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.floors import SHIPPED, fallen, load_floors
from benchmarks.report import markdown, print_record, update
from benchmarks.suite import choose, joined, run_suite
from meada.errors import MeadaError
from meada.files import write_json
from meada.machine.terminal import progress


def bench(
    case: Annotated[
        list[str] | None,
        typer.Option(
            help="Run this case or family only: gemm, maximise, minimise, evaluate, data, run, blocks, "
            "or a single case such as maximise-lenet. May be repeated."
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Use small sizes; takes about a minute.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Exit with 1 if a ratio is below its floor.")] = False,
    floors: Annotated[Path | None, typer.Option(help="TOML file of floors. [default: benchmarks/floors.toml]")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write the record to this file and its tables into the README.md next to it. With --case, "
            "other cases that the file holds for the same machine are kept."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Time the published loop, this package and the machine's peak in one interleaved run.

    Example: meada bench --quick --case maximise-lenet --json
    """
    if check and quick:
        raise MeadaError("--check must be used without --quick: the floors hold for the full sizes only")
    wanted = load_floors(floors or SHIPPED)
    names = choose(case or [])
    with progress("bench", quiet=quiet or as_json) as tell:
        record = run_suite(names, quick=quick, tell=tell)
    if out is not None:
        record = _write(record, out, quick, merge=bool(case))
    if as_json:
        typer.echo(json.dumps(record, indent=2))
    else:
        print_record(record)
    below = fallen(record, wanted) if check else []
    for sentence in below:
        typer.echo(f"meada: {sentence}", err=True)
    if below:
        raise typer.Exit(1)


def _write(record: dict[str, object], out: Path, quick: bool, merge: bool) -> dict[str, object]:
    """Write the record, and its tables between the markers of the README.md next to it."""
    command = "meada bench --quick" if quick else "meada bench"
    record = {"command": command, **joined(record, out if merge else None)}
    write_json(out, record)
    readme = out.with_name("README.md")
    if readme.exists():
        update(readme, markdown(record, command))
    return record
