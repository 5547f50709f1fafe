"""``meada report``: a page of what runs left on disk, or one of the paper's tables with ours."""

import sys
from pathlib import Path
from typing import Annotated

import typer


def report(
    runs: Annotated[list[Path], typer.Argument(help="Runs' folders, or folders of them.")],
    out: Annotated[Path | None, typer.Option(help="The HTML page. [default: report.html; a table is printed]")] = None,
    table: Annotated[
        int | None, typer.Option(help="Instead of the whole page, a table of the paper: 1, 2 or 3.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="A Markdown file; its pictures go to figures/ next to it, or to --png.")
    ] = None,
    png: Annotated[Path | None, typer.Option(help="Put the charts as PNG into a folder.")] = None,
    rule: Annotated[str, typer.Option(help="Whose checkpoints: last, source_val, crafted or oracle.")] = "last",
) -> None:
    """Show what runs achieved: one HTML file that opens anywhere, or a table of the paper.

    Example: meada report runs/erm-* runs/meada-* --out report.html
    """
    from meada.reports.page import build, to_markdown, write
    from meada.reports.page import table as table_of
    from meada.reports.page.terminal import print_page
    from meada.reports.runs import find_runs

    found = find_runs(runs)
    if table is None:
        command = " ".join(["meada report", *map(str, runs), *(["--rule", rule] * (rule != "last"))])
        page = build(found, rule=rule, command=command)
        out = out if out or markdown or png else Path("report.html")
    else:
        page = table_of(found, table, rule=rule, command=f"meada reproduce digits --out {runs[0]}")
    for path in write(page, out=out, markdown=markdown, png=png):
        typer.echo(str(path))
    if not (out or markdown or png):
        print_page(page) if sys.stdout.isatty() else typer.echo(to_markdown(page, {}, Path()))
