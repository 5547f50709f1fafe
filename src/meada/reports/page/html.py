"""Render a report as one HTML file that loads nothing else; text from records is always escaped."""

import base64
from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from itertools import groupby
from string import Template

from meada import __version__
from meada.machine.terminal import printable
from meada.reports.page.blocks import Block, Cell, Chart, Gallery, Page, Table, Text, marked, slug

FOLDED = 24  # rows: a longer table is opened by whoever wants it
BREAKABLE = 60  # letters: a cell of more may be broken into lines


def to_html(page: Page, *, refresh: int = 0) -> str:
    """The page as HTML; ``refresh``: seconds after which the browser reloads it."""
    body, contents = [], []
    for i, section in enumerate(page.sections):
        title = escape(section.title)
        body.append(f'<section id="s{i}"><h2>{title}</h2>')
        body += _blocks(section.blocks, f"s{i}")
        body.append("</section>\n")
        contents.append(f'<li><a href="#s{i}">{title}</a></li>\n')
    filled = Template(_file("page.html")).substitute(
        title=escape(page.title),
        refresh=f'<meta http-equiv="refresh" content="{refresh}">\n' if refresh else "",
        style=_file("page.css"),
        contents="".join(contents),
        body="".join(body),
        version=escape(__version__),
        script=_file("page.js"),
    )
    return printable(filled)  # names in records may hold control characters, in text and in charts


def inline(text: str) -> str:
    """
    >>> inline("**a** < `b`")
    '<strong>a</strong> &lt; <code>b</code>'
    """
    return "".join(f"<{kind}>{escape(part)}</{kind}>" if kind else escape(part) for kind, part in marked(text))


def _file(name: str) -> str:
    return (files("meada.reports.page") / name).read_text(encoding="utf-8")


def _blocks(blocks: Sequence[Block], place: str) -> Iterator[str]:
    """Render blocks, with consecutive small charts side by side."""
    numbered = [(f"{place}b{i}", block) for i, block in enumerate(blocks)]
    for small, together in groupby(numbered, lambda one: isinstance(one[1], Chart) and one[1].small):
        made = [_block(block, name) for name, block in together]
        inside, form = "".join(made), "grid two" if len(made) in (2, 4) else "grid"
        yield f'<div class="{form}">{inside}</div>\n' if small else inside


def _block(block: Block, name: str) -> str:
    match block:
        case Text():
            mark = "" if block.kind == "plain" else f' class="{block.kind}"'
            return f"<p{mark}>{inline(block.text)}</p>\n"
        case Table():
            return _table(block)
        case Chart():
            return _chart(block, name)
        case Gallery():
            return _gallery(block)


def _table(table: Table, *, fold: bool = True) -> str:
    title = escape(table.title)
    if fold and len(table.rows) > FOLDED:
        inside = _table(table, fold=False)
        return f"<details><summary>{title}: {len(table.rows)} rows</summary>{inside}</details>\n"
    classes = (' class="num"' if numeric else "" for numeric in table.numeric())
    columns = list(zip(table.columns, classes, strict=True))
    head = "".join(f'<th scope="col"{num}><button type="button">{escape(name)}</button></th>' for name, num in columns)
    body = ""
    for row in table.rows:
        cells = (_cell(table, name, cell, num) for (name, num), cell in zip(columns, row, strict=True))
        body += f"<tr>{''.join(cells)}</tr>"
    return (
        f'<figure><figcaption>{title}<button type="button" class="csv" '
        f'data-name="{slug(table.title)}.csv">CSV</button></figcaption>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{title}"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></figure>\n"
    )


def _cell(table: Table, column: str, cell: Cell, num: str) -> str:
    if isinstance(cell, str):
        about = ' class="long"' if len(cell) > BREAKABLE else ""
    else:
        about = f'{num} data-value="{"" if cell is None else repr(cell)}"'
    return f"<td{about}>{inline(table.shown(column, cell))}</td>"


def _chart(chart: Chart, name: str) -> str:
    from meada.reports.page.charts import svg  # matplotlib is an extra

    numbers = _table(chart.table(), fold=False)
    return (
        f'<figure class="chart"><figcaption>{escape(chart.title)}</figcaption>'
        f'<div class="plot" role="img" aria-label="{escape(chart.alternative())}">{svg(chart, name)}</div>'
        f"<details><summary>The numbers</summary>{numbers}</details></figure>\n"
    )


def _gallery(gallery: Gallery) -> str:
    columns = []
    for picture in gallery.pictures:
        images = zip(gallery.rows, picture.images, picture.captions, strict=True)
        columns.append("<div>" + "".join(_image(png, f"{row}: {caption}") for row, png, caption in images) + "</div>")
    note = f'<p class="missing">{escape(gallery.note)}</p>' if gallery.note else ""
    return (
        f"<figure><figcaption>{escape(gallery.title)}</figcaption>"
        f'<div class="pictures">{"".join(columns)}</div>{note}</figure>\n'
    )


def _image(png: bytes, text: str) -> str:
    data, text = base64.b64encode(png).decode(), escape(text)
    return f'<figure><img alt="{text}" src="data:image/png;base64,{data}"><figcaption>{text}</figcaption></figure>'
