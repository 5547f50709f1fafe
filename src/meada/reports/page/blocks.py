"""What a page is made of, as plain data: HTML, Markdown and pictures are three ways to show it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

Cell = str | int | float | None
Number = int | float


@dataclass(frozen=True)
class Text:
    """A paragraph. A ``warning`` says what the reader must not conclude."""

    text: str
    kind: Literal["plain", "warning", "missing"] = "plain"


@dataclass(frozen=True)
class Table:
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
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


@dataclass(frozen=True)
class Series:
    """Heights ``y`` over ``x``, or over the chart's categories; None where there is no value."""

    name: str
    y: tuple[Number | None, ...]
    x: tuple[Number, ...] = ()
    low: tuple[Number | None, ...] = ()
    high: tuple[Number | None, ...] = ()
    colour: int = 0
    dashed: bool = False


@dataclass(frozen=True)
class Chart:
    """``bars``: a bar a category and series; ``lines``: over numbers; ``heat``: a row a series."""

    kind: Literal["bars", "lines", "heat"]
    title: str
    series: tuple[Series, ...]
    x_label: str
    y_label: str
    categories: tuple[str, ...] = ()
    marks: tuple[tuple[Number, str], ...] = ()  # vertical lines: where, and what they say
    y_range: tuple[Number, Number] | None = None
    diagonal: bool = False
    small: bool = False  # stands beside others of its kind

    def alternative(self) -> str:
        """What the picture shows, for whoever cannot see it.

        >>> one = Series("ERM", (10.0, 30.0))
        >>> Chart("bars", "Accuracy", (one,), "domain", "%", ("a", "b")).alternative()
        'Accuracy. ERM: from 10.0 (a) to 30.0 (b).'
        """
        return " ".join([f"{self.title}.", *(self._range(series) for series in self.series)])

    def _range(self, series: Series) -> str:
        known = [(y, i) for i, y in enumerate(series.y) if y is not None]
        if not known:
            return f"{series.name}: no values."
        (low, i), (high, j) = min(known), max(known)
        return (
            f"{series.name}: from {_short(low)} ({self._place(series, i)}) "
            f"to {_short(high)} ({self._place(series, j)})."
        )

    def _place(self, series: Series, i: int) -> str:
        return self.categories[i] if self.categories else f"{self.x_label} {series.x[i]:g}"

    def table(self) -> Table:
        """The numbers that the picture is drawn from."""
        if self.kind == "heat":
            rows = tuple((s.name, *s.y) for s in self.series)
            return Table(self.title, (self.y_label, *self.categories), rows)
        columns = ("series", self.x_label, self.y_label, "low", "high")
        full = tuple(row for series in self.series for row in self._rows(series))
        ranged = any(row[3] is not None for row in full)
        digits = {name: 3 for name in columns} if self._fine() else {}
        return Table(
            self.title, columns if ranged else columns[:3],
            tuple(row if ranged else row[:3] for row in full), digits,
        )  # fmt: skip

    def _rows(self, series: Series) -> Iterator[tuple[Cell, ...]]:
        for i, y in enumerate(series.y):
            low, high = (side[i] if side else None for side in (series.low, series.high))
            where: Cell = self.categories[i] if self.categories else series.x[i]
            yield series.name, where, y, low, high

    def _fine(self) -> bool:
        """Whether one decimal place would hide what happens."""
        known = [abs(y) for series in self.series for y in series.y if y is not None]
        return bool(known) and max(known) < 20


def _short(value: Number) -> str:
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"


@dataclass(frozen=True)
class Picture:
    """Of one sample: PNG bytes with a caption each, from top to bottom."""

    images: tuple[bytes, ...]
    captions: tuple[str, ...]


@dataclass(frozen=True)
class Gallery:
    title: str
    rows: tuple[str, ...]  # what each image of a picture shows
    pictures: tuple[Picture, ...]
    note: str = ""


@dataclass(frozen=True)
class Figure:
    """A picture that was made elsewhere."""

    title: str
    image: bytes


Block = Text | Table | Chart | Gallery | Figure


@dataclass(frozen=True)
class Section:
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Page:
    title: str
    sections: tuple[Section, ...]

    def blocks(self) -> Iterator[Block]:
        for section in self.sections:
            yield from section.blocks
