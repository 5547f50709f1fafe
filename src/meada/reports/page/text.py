"""Render a report as Markdown or on a terminal (a chart as its numbers, a gallery as its title)."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text as Line

from meada.evaluation.selection import RULE_TEXTS
from meada.machine.terminal import printable
from meada.reports.page.blocks import Block, Cell, Chart, Gallery, Page, Table, Text, marked


def print_page(page: Page, console: Console | None = None) -> None:
    console = console or Console()
    console.print(styled(page.title), style="bold")
    for section in page.sections:
        console.print()
        console.print(styled(section.title), style="bold underline")
        print_blocks(section.blocks, console)


def print_blocks(blocks: Iterable[Block], console: Console | None = None) -> None:
    console = console or Console()
    for block in blocks:
        match block:
            case Text():
                console.print(styled(f"Warning: {block.text}" if block.kind == "warning" else block.text))
            case Table():
                console.print(grid(block))
            case Chart():
                console.print(grid(block.table()))
            case Gallery():
                console.print(styled(f"Pictures: {block.title}"))


def styled(text: str) -> Line:
    return Line.assemble(*((part, {"strong": "bold", "code": "cyan"}.get(kind, "")) for kind, part in marked(text)))


def grid(table: Table) -> Grid:
    made = Grid(title=styled(table.title))
    for name, number in zip(table.columns, table.numeric(), strict=True):
        made.add_column(Line(name), justify="right" if number else "left", overflow="fold")
    for row in table.rows:
        made.add_row(*(styled(table.shown(name, cell)) for name, cell in zip(table.columns, row, strict=True)))
    return made


def print_record(record: Mapping[str, Any], out: Path, console: Console | None = None) -> None:
    """Print the accuracy of each rule's checkpoint on each domain, and the mean over domains."""
    console, results = console or Console(), record["results"]
    rows: list[tuple[Cell, ...]] = [
        (domain, *(float(each[domain]["accuracy"]) for each in results.values())) for domain in results["last"]
    ]
    means = (fmean(float(s["accuracy"]) for s in each.values()) if each else None for each in results.values())
    rows.append(("mean", *means))
    title = f"{record['recipe']}, seed {record['seed']}: accuracy (%)"
    print_blocks([Table(title, ("", *results), tuple(rows)), Text("How each checkpoint was chosen:")], console)
    for rule in results:
        console.print(f"  {rule:<10}  {RULE_TEXTS[rule]}")
    spent = ", ".join(f"{k} {v:.0f} s" for k, v in record["seconds"].items())
    line = f"{record['steps']:,} steps; {spent}. Record: {out / 'record.json'}"
    console.print(line, soft_wrap=True)  # a path that is cut in two cannot be copied


def print_scores(scores: Mapping[str, Mapping[str, float]], *, title: str) -> None:
    names = {"accuracy": "accuracy (%)", "ece": "ECE", "nll": "NLL", "brier": "Brier"}
    rows: list[tuple[Cell, ...]] = [(name, int(s["n"]), *(float(s[k]) for k in names)) for name, s in scores.items()]
    digits = {"accuracy (%)": 2, "ECE": 4, "NLL": 4, "Brier": 4}
    print_blocks([Table(title, ("domain", "n", *names.values()), tuple(rows), digits)])


def to_markdown(page: Page, pictures: Mapping[int, Path], folder: Path) -> str:
    """The page as Markdown; ``pictures``: the file of each drawn block, by its position in the page."""
    lines, place = [f"# {plain(page.title)}", ""], 0
    for section in page.sections:
        lines += [f"## {plain(section.title)}", ""]
        for block in section.blocks:
            lines += _block(block, pictures.get(place), folder)
            place += 1
    return printable("\n".join(lines).rstrip()) + "\n"


def plain(text: str) -> str:
    r"""Escape all markup in text from records, except ``**strong**`` and code.

    >>> plain("a|b <b> *c* **d** `e|f`")
    'a\\|b &lt;b&gt; \\*c\\* **d** `e\\|f`'
    """
    pieces = []
    for kind, part in marked(" ".join(text.split())):
        if kind == "code":  # GitHub splits cells at | in code too
            pieces.append("`" + part.replace("|", r"\|") + "`")
        else:
            part = part.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
            part = re.sub(r"([\\`*{}\[\]|#]|(?<!\w)_|_(?!\w))", r"\\\1", part)
            pieces.append(f"**{part}**" if kind == "strong" else part)
    return "".join(pieces)


def _block(block: Block, picture: Path | None, folder: Path) -> Iterator[str]:
    match block:
        case Text():
            mark = "**Warning:** " if block.kind == "warning" else ""
            yield from (f"{mark}{plain(block.text)}", "")
        case Table():
            yield from _table(block)
        case Chart():
            if picture is None:
                yield from _table(block.table())
            else:
                yield from (_image(block.alternative(), picture, folder), "")
        case Gallery():
            if picture is not None:
                yield from (_image(block.title, picture, folder), "")


def _image(text: str, picture: Path, folder: Path) -> str:
    return f"![{plain(text)}]({os.path.relpath(picture, folder).replace(' ', '%20')})"


def _table(table: Table) -> Iterator[str]:
    if table.title:
        yield from (f"**{plain(table.title)}**", "")
    yield _line(map(plain, table.columns))
    yield _line("---:" if n else "---" for n in table.numeric())
    for row in table.rows:
        cells = zip(table.columns, row, strict=True)
        yield _line(plain(table.shown(column, cell)) for column, cell in cells)
    yield ""


def _line(cells: Iterator[str]) -> str:
    return "| " + " | ".join(cells) + " |"
