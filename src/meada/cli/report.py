"""``meada report``: the paper's tables, ours beside the paper's, from records on disk."""

from pathlib import Path
from typing import Annotated

import typer


def report(
    folder: Annotated[Path, typer.Argument(help="A folder of runs' folders.")],
    table: Annotated[int, typer.Option(help="Of the paper: 1, 2 or 3.")] = 1,
    markdown: Annotated[
        Path | None, typer.Option(help="Write the table to this file instead of printing it.")
    ] = None,
) -> None:
    """Print a table of the paper with our figures beside its own.

    Example: meada report results/digits --table 1 --markdown results/README.md
    """
    from meada.errors import MeadaError
    from meada.files import write_text
    from meada.reports import table1, table2, table3

    runs = sorted(path.parent for path in folder.glob("*/record.json"))
    if not runs:
        raise MeadaError(f"{folder} holds no finished run: none of its folders has a record.json")
    if table == 1:
        text = table1.page(table1.read_records(folder), f"meada reproduce digits --out {folder}")
    elif table == 2:
        text = table2.markdown(table2.read_runs(runs))
    elif table == 3:
        text = table3.table3(runs)
    else:
        raise MeadaError(f"--table {table}: the paper has the tables 1, 2 and 3")
    if markdown:
        write_text(markdown, text)
    else:
        typer.echo(text)
