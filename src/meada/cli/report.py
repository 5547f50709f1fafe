"""``meada report``: a page of what runs left on disk, or one of the paper's tables beside ours."""

from pathlib import Path
from typing import Annotated

import typer


def report(
    runs: Annotated[list[Path], typer.Argument(help="Runs' folders, or folders of them.")],
    out: Annotated[Path | None, typer.Option(help="The HTML page; report.html if nothing else is asked for.")] = None,
    table: Annotated[int | None, typer.Option(help="Not the page but a table of the paper: 1, 2 or 3.")] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Write the page, or the table, as Markdown to this file.")
    ] = None,
    png: Annotated[Path | None, typer.Option(help="Put the charts as PNG into a folder.")] = None,
    rule: Annotated[str, typer.Option(help="Whose checkpoints: last, source_val, crafted or oracle.")] = "last",
) -> None:
    """Show what runs achieved: one HTML file that opens anywhere, or a table of the paper.

    Example: meada report runs/erm-* runs/meada-* --out report.html
    """
    from meada.reports.page import build, write
    from meada.reports.runs import find_runs

    if table is not None:
        _table(runs, table, markdown, rule)
        return
    if not (out or markdown or png):
        out = Path("report.html")
    command = " ".join(["meada report", *map(str, runs), *(["--rule", rule] * (rule != "last"))])
    page = build(find_runs(runs), rule=rule, command=command)
    for path in write(page, out=out, markdown=markdown, png=png):
        typer.echo(str(path))


def _table(folders: list[Path], number: int, out: Path | None, rule: str) -> None:
    """Printed, or written to ``out`` with its figures beside it."""
    from meada.errors import MeadaError
    from meada.files import write_text
    from meada.reports import table1, table2, table3
    from meada.reports.runs import find_runs

    runs = [run for run in find_runs(folders) if run.finished]
    told = " ".join(map(str, folders))
    if not runs:
        raise MeadaError(f"{told}: no finished run, for none of the folders has a record.json")
    if number not in (1, 2, 3):
        raise MeadaError(f"--table {number}: the paper has the tables 1, 2 and 3")
    command = f"meada reproduce digits --out {folders[0]}"  # the study names its own
    if number == 1 and out:
        table1.write(runs, out, command)
        return
    if number == 3 and out:
        table3.write(runs, out, rule)
        return
    text = {
        1: lambda: table1.page(runs, command),
        2: lambda: table2.markdown(runs),
        3: lambda: table3.page(runs, rule),
    }[number]()
    if out:
        write_text(out, text)
    else:
        typer.echo(text)
