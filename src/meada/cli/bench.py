"""``meada bench``: how fast, against the published loop and against the machine's own limit."""

import json
from pathlib import Path
from typing import Annotated

import typer


def bench(
    case: Annotated[
        list[str] | None,
        typer.Option(
            help="Only this case or family: gemm, maximise, minimise, evaluate, data, run, blocks, "
            "or one such as maximise-lenet. May be repeated."
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes, in a minute.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Exit with 1 if a ratio is below its floor.")] = False,
    floors: Annotated[Path | None, typer.Option(help="A TOML file of floors. [default: the package's]")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write the record here, and its tables into a README.md beside it. With --case, "
            "what the file has of other cases on the same machine is kept."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Measure the published loop, this package and the machine's peak side by side.

    Example: meada bench --quick --case maximise-lenet --json
    """
    from meada.bench.floors import SHIPPED, fallen, load_floors
    from meada.bench.report import markdown, print_record, update
    from meada.bench.suite import choose, joined, run_suite
    from meada.cli.progress import progress
    from meada.errors import MeadaError
    from meada.files import write_json

    if check and quick:
        raise MeadaError("--check with --quick: the floors hold for the full sizes only")
    wanted = load_floors(floors or SHIPPED)
    names = choose(case or [])
    with progress("bench", quiet=quiet or as_json) as tell:
        record = run_suite(names, quick=quick, tell=tell)
    if out is not None:
        command = "meada bench --quick" if quick else "meada bench"
        record = {"command": command, **joined(record, out if case else None)}
        write_json(out, record)
        readme = out.with_name("README.md")
        if readme.exists():
            update(readme, markdown(record, command))
    if as_json:
        typer.echo(json.dumps(record, indent=2))
    else:
        print_record(record)
    below = fallen(record, wanted) if check else []
    for sentence in below:
        typer.echo(f"meada: {sentence}", err=True)
    if below:
        raise typer.Exit(1)
