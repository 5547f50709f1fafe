"""The page as one HTML file: nothing is fetched, and no text from a record is taken for markup."""

import base64
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from html import escape
from importlib.resources import files
from itertools import groupby
from string import Template
from typing import Any

from meada import __version__
from meada.reports.page.blocks import Block, Cell, Chart, Figure, Gallery, Page, Table, Text

FOLDED = 24  # rows: a longer table is opened by whoever wants it
LONG = 60  # letters: a cell of more may be broken into lines


def to_html(page: Page, *, refresh: int = 0) -> str:
    """``refresh``: seconds after which the browser reads the page again, for one that is served."""
    charts = [block for block in page.blocks() if isinstance(block, Chart)]
    numbers = {id(chart): i for i, chart in enumerate(charts)}
    body, contents = [], []
    for i, section in enumerate(page.sections):
        title = escape(section.title)
        body.append(f'<section id="s{i}"><h2>{title}</h2>')
        body += _blocks(section.blocks, numbers)
        body.append("</section>\n")
        contents.append(f'<li><a href="#s{i}">{title}</a></li>\n')
    return Template(_file("page.html")).substitute(
        title=escape(page.title),
        refresh=f'<meta http-equiv="refresh" content="{refresh}">\n' if refresh else "",
        style=_file("page.css"),
        contents="".join(contents),
        body="".join(body),
        version=escape(__version__),
        data=as_json([asdict(chart) for chart in charts]),
        script=_file("page.js"),
    )


def as_json(value: Any) -> str:
    r"""JSON that cannot end the element it stands in; what is not finite is null.

    >>> as_json(["</script>", float("nan")])
    '["\\u003c/script\\u003e", null]'
    """
    text = json.dumps(_finite(value), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def slug(title: str) -> str:
    """
    >>> slug("Accuracy (%), ERM: <b>")
    'accuracy-erm-b'
    """
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:80] or "table"


def _file(name: str) -> str:
    return (files("meada.reports.page") / name).read_text(encoding="utf-8")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _blocks(blocks: Sequence[Block], numbers: dict[int, int]) -> Iterator[str]:
    """Small charts that follow one another stand side by side."""
    for small, together in groupby(blocks, lambda b: isinstance(b, Chart) and b.small):
        made = [_block(block, numbers) for block in together]
        inside, form = "".join(made), "grid two" if len(made) in (2, 4) else "grid"
        yield f'<div class="{form}">{inside}</div>\n' if small else inside


def _block(block: Block, numbers: dict[int, int]) -> str:
    match block:
        case Text():
            mark = "" if block.kind == "plain" else f' class="{block.kind}"'
            return f"<p{mark}>{escape(block.text)}</p>\n"
        case Table():
            return _table(block)
        case Chart():
            return _chart(block, numbers[id(block)])
        case Gallery():
            return _gallery(block)
        case Figure():
            return (
                f'<figure class="made"><figcaption>{escape(block.title)}</figcaption>'
                f"{_image(block.image, block.title)}</figure>\n"
            )


def _table(table: Table, *, fold: bool = True) -> str:
    right = [all(isinstance(row[i], int | float | None) for row in table.rows)
             for i in range(len(table.columns))]  # fmt: skip
    head = "".join(
        f'<th scope="col"{_class(num)}><button type="button">{escape(name)}</button></th>'
        for name, num in zip(table.columns, right, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(_cell(table, name, cell, num) for name, cell, num in zip(table.columns, row, right, strict=True))
        + "</tr>"
        for row in table.rows
    )
    title = escape(table.title)
    if fold and len(table.rows) > FOLDED:
        inside = _table(table, fold=False)
        return f"<details><summary>{title}: {len(table.rows)} rows</summary>{inside}</details>\n"
    return (
        f'<figure><figcaption>{title}<button type="button" class="csv" '
        f'data-name="{slug(table.title)}.csv">CSV</button></figcaption>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{title}"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></figure>\n"
    )


def _cell(table: Table, column: str, cell: Cell, num: bool) -> str:
    shown = escape(table.shown(column, cell))
    if cell is None:
        return f'<td{_class(num)} data-value="">{shown}</td>'
    if isinstance(cell, str):
        long = ' class="long"' if len(cell) > LONG else ""
        return f"<td{long}>{shown}</td>"
    return f'<td{_class(num)} data-value="{cell!r}">{shown}</td>'


def _class(num: bool) -> str:
    return ' class="num"' if num else ""


def _chart(chart: Chart, number: int) -> str:
    numbers = _table(chart.table(), fold=False)
    return (
        f'<figure class="chart"><figcaption>{escape(chart.title)}</figcaption>'
        f'<div class="plot" role="img" data-chart="{number}" '
        f'aria-label="{escape(chart.alternative())}"></div>'
        f"<details><summary>The numbers</summary>{numbers}</details></figure>\n"
    )


def _gallery(gallery: Gallery) -> str:
    columns = []
    for picture in gallery.pictures:
        images = zip(gallery.rows, picture.images, picture.captions, strict=True)
        columns.append("<div>" + "".join(
            f"<figure>{_image(image, f'{row}: {caption}')}"
            f"<figcaption>{escape(row)}: {escape(caption)}</figcaption></figure>"
            for row, image, caption in images
        ) + "</div>")  # fmt: skip
    note = f'<p class="missing">{escape(gallery.note)}</p>' if gallery.note else ""
    return (
        f"<figure><figcaption>{escape(gallery.title)}</figcaption>"
        f'<div class="pictures">{"".join(columns)}</div>{note}</figure>\n'
    )


def _image(png: bytes, alternative: str) -> str:
    data = base64.b64encode(png).decode()
    return f'<img alt="{escape(alternative)}" src="data:image/png;base64,{data}">'
