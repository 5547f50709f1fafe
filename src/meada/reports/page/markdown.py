"""The same page in Markdown: tables whole, charts as pictures where they were drawn, or numbers."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from meada.reports.page.blocks import Block, Chart, Figure, Gallery, Page, Table, Text


def to_markdown(page: Page, pictures: Mapping[int, Path], folder: Path) -> str:
    """``pictures``: the file of each drawn block, by its place in the page."""
    lines, place = [f"# {plain(page.title)}", ""], 0
    for section in page.sections:
        lines += [f"## {plain(section.title)}", ""]
        for block in section.blocks:
            lines += _block(block, pictures.get(place), folder)
            place += 1
    return "\n".join(lines)


def plain(text: str) -> str:
    r"""No markup and no markup's signs, whatever a record says.

    >>> plain("a|b <b> *c*")
    'a\\|b &lt;b&gt; \\*c\\*'
    """
    text = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_{}\[\]|#])", r"\\\1", text)


def _block(block: Block, picture: Path | None, folder: Path) -> Iterator[str]:
    match block:
        case Text():
            mark = {"plain": "", "warning": "**Warning:** ", "missing": ""}[block.kind]
            yield from (f"{mark}{plain(block.text)}", "")
        case Table():
            yield from _table(block)
        case Chart():
            if picture is None:
                yield from _table(block.table())
            else:
                yield from (_image(block.alternative(), picture, folder), "")
        case Gallery() | Figure():
            if picture is not None:
                yield from (_image(block.title, picture, folder), "")


def _image(text: str, picture: Path, folder: Path) -> str:
    return f"![{plain(text)}]({os.path.relpath(picture, folder).replace(' ', '%20')})"


def _table(table: Table) -> Iterator[str]:
    numeric = [all(isinstance(row[i], int | float | None) for row in table.rows) for i in range(len(table.columns))]
    yield from (f"**{plain(table.title)}**", "")
    yield _line(map(plain, table.columns))
    yield _line("---:" if n else "---" for n in numeric)
    for row in table.rows:
        cells = zip(table.columns, row, strict=True)
        yield _line(plain(table.shown(column, cell)) for column, cell in cells)
    yield ""


def _line(cells: Iterator[str]) -> str:
    return "| " + " | ".join(cells) + " |"
