"""Parts of a page as plain data, rendered as HTML, Markdown, pictures or on the terminal.

Texts and cells may hold two marks, ``**strong**`` and `` `code` ``; anything else in them is shown as it is.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Cell = str | int | float | None
Number = int | float
Seeds = Sequence[Sequence[Number]]  # at each place the values of every seed


@dataclass(frozen=True)
class Text:
    """A paragraph. A ``warning`` says what the reader must not conclude."""

    text: str
    kind: Literal["plain", "warning", "missing"] = "plain"


@dataclass(frozen=True)
class Table:
    """A cell is a text, a number or None, which is shown as a dash."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]  # each with one cell per column
    digits: Mapping[str, int] = field(default_factory=dict)  # column -> places shown; 1 if unnamed

    def shown(self, column: str, cell: Cell) -> str:
        """
        >>> table = Table("", ("p",), (), {"p": 3})
        >>> table.shown("p", 0.01234), table.shown("n", 12345), table.shown("p", None)
        ('0.012', '12,345', '–')
        """
        if cell is None:
            return "–"
        if isinstance(cell, str):
            return cell
        return f"{cell:,}" if isinstance(cell, int) else f"{cell:.{self.digits.get(column, 1)}f}"

    def numeric(self) -> list[bool]:
        """For each column, whether all of its cells are numbers."""
        return [all(isinstance(row[i], int | float | None) for row in self.rows) for i in range(len(self.columns))]


@dataclass(frozen=True)
class Series:
    """Values ``y`` over ``x``, or over the chart's categories; None if there is no value."""

    name: str
    y: tuple[Number | None, ...]
    x: tuple[Number, ...] = ()
    low: tuple[Number | None, ...] = ()
    high: tuple[Number | None, ...] = ()
    colour: int = 0
    dashed: bool = False
    paper: tuple[Number | None, ...] = ()  # the paper's values, as hollow marks
    loose: bool = False  # points that no line joins


def band(name: str, values: Seeds, x: Iterable[Number], colour: int, *, several: bool = True) -> Series:
    """Means over seeds, with minimum and maximum if there are several seeds.

    >>> band("ERM", [(1.0, 3.0)], [0], colour=2)
    Series(name='ERM', y=(2.0,), x=(0,), low=(1.0,), high=(3.0,), colour=2, dashed=False, paper=(), loose=False)
    """
    low, high = (tuple(map(end, values)) if several else () for end in (min, max))
    return Series(name, tuple(sum(v) / len(v) for v in values), tuple(x), low, high, colour)


@dataclass(frozen=True)
class Chart:
    """``bars`` and ``points``: one for each category and series; ``panels``: a panel a category, in it a row a series;

    ``lines``: over numbers; ``heat``: a row a series.
    """

    kind: Literal["bars", "points", "panels", "lines", "heat"]
    title: str
    series: tuple[Series, ...]
    x_label: str
    y_label: str
    categories: tuple[str, ...] = ()
    marks: tuple[tuple[Number, str], ...] = ()  # vertical lines: where, and what they say
    y_range: tuple[Number, Number] | None = None
    diagonal: bool = False
    log_x: bool = False
    small: bool = False  # stands next to others of its kind
    name: str = ""  # of its file, if not from its title

    def alternative(self) -> str:
        """Alternative text of the chart.

        >>> one = Series("ERM", (10.0, 30.0))
        >>> Chart("bars", "Accuracy", (one,), "domain", "%", ("a", "b")).alternative()
        'Accuracy. ERM: from 10.0 (a) to 30.0 (b).'
        """
        return " ".join([f"{self.title}.", *map(self._range, self.series)])

    def _range(self, series: Series) -> str:
        known = [(y, i) for i, y in enumerate(series.y) if y is not None]
        if not known:
            return f"{series.name}: no values."
        low, high = (self._place(series, *end) for end in (min(known), max(known)))
        return f"{series.name}: from {low} to {high}."

    def _place(self, series: Series, y: Number, i: int) -> str:
        where = self._where(series, i)
        value = f"{y:.1f}" if abs(y) >= 10 else f"{y:.3g}"
        return f"{value} ({where if isinstance(where, str) else f'{self.x_label} {where:g}'})"

    def _where(self, series: Series, i: int) -> str | Number:
        """Label of a point: its category, or its x."""
        if not self.categories:
            return series.x[i]
        return self.categories[int(series.x[i]) if series.x else i]

    def table(self) -> Table:
        """The chart's numbers as a table; empty columns are left out."""
        if self.kind == "heat":
            rows = tuple((s.name, *s.y) for s in self.series)
            return Table(self.title, (self.y_label, *self.categories), rows)
        columns = ("series", self.x_label, self.y_label, "low", "high", "paper")
        full = [row for series in self.series for row in self._rows(series)]
        kept = [i for i in range(6) if i < 3 or any(row[i] is not None for row in full)]
        known = [abs(y) for series in self.series for y in series.y if y is not None]
        small = bool(known) and max(known) < 20  # one decimal place would hide what happens
        rows = tuple(tuple(row[i] for i in kept) for row in full)
        return Table(self.title, tuple(columns[i] for i in kept), rows, {name: 3 for name in columns if small})

    def _rows(self, series: Series) -> Iterator[tuple[Cell, ...]]:
        for i, y in enumerate(series.y):
            extra = (side[i] if side else None for side in (series.low, series.high, series.paper))
            yield series.name, self._where(series, i), y, *extra


@dataclass(frozen=True)
class Picture:
    """One sample: PNG bytes with a caption each, from top to bottom."""

    images: tuple[bytes, ...]
    captions: tuple[str, ...]


@dataclass(frozen=True)
class Gallery:
    title: str
    rows: tuple[str, ...]  # what each image of a picture shows
    pictures: tuple[Picture, ...]
    note: str = ""
    name: str = ""


Block = Text | Table | Chart | Gallery


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it, in order."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Page:
    """A whole report."""

    title: str
    sections: tuple[Section, ...]

    def blocks(self) -> Iterator[Block]:
        for section in self.sections:
            yield from section.blocks


def slug(title: str) -> str:
    """
    >>> slug("Accuracy (%), ERM: <b>")
    'accuracy-erm-b'
    """
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:80] or "table"


def marked(text: str) -> Iterator[tuple[str, str]]:
    """Split text into pieces with their markup: ``strong``, ``code`` or none.

    >>> [*marked("a **b** `c`")]
    [('', 'a '), ('strong', 'b'), ('', ' '), ('code', 'c')]
    """
    for piece in re.split(r"(\*\*[^*<>]+\*\*|`[^`<>]+`)", text):
        if len(piece) > 4 and piece[:2] == piece[-2:] == "**":
            yield "strong", piece[2:-2]
        elif len(piece) > 2 and piece[0] == piece[-1] == "`":
            yield "code", piece[1:-1]
        elif piece:
            yield "", piece
