"""The same page in Markdown: tables whole, charts as pictures where they were drawn, or numbers."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from meada.reports.page.blocks import Block, Chart, Gallery, Page, Table, Text, marked


def to_markdown(page: Page, pictures: Mapping[int, Path], folder: Path) -> str:
    """``pictures``: the file of each drawn block, by its place in the page."""
    lines, place = [f"# {plain(page.title)}", ""], 0
    for section in page.sections:
        lines += [f"## {plain(section.title)}", ""]
        for block in section.blocks:
            lines += _block(block, pictures.get(place), folder)
            place += 1
    return "\n".join(lines).rstrip() + "\n"


def plain(text: str) -> str:
    r"""No markup's signs, whatever a record says, but for ``**strong**`` and code.

    >>> plain("a|b <b> *c* **d** `e|f`")
    'a\\|b &lt;b&gt; \\*c\\* **d** `e\\|f`'
    """
    wrap = {"strong": "**{}**", "code": "`{}`", "": "{}"}
    return "".join(wrap[kind].format(_escaped(part, kind)) for kind, part in marked(" ".join(text.split())))


def _escaped(text: str, kind: str) -> str:
    if kind == "code":  # GitHub splits cells at | in code too
        return text.replace("|", r"\|")
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*{}\[\]|#]|(?<!\w)_|_(?!\w))", r"\\\1", text)


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
