"""Charts and galleries as PNG files, for papers and slides."""

from io import BytesIO
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from PIL import Image

from meada.files import write_bytes
from meada.reports.page.blocks import Chart, Figure, Gallery, Page, Series
from meada.reports.page.render import slug
from meada.reports.pictures import save

COLOURS = (
    "#5f6b7a", "#b45309", "#1d4ed8", "#047857", "#a21857", "#6d28d9", "#0e7490", "#854d0e",
)  # fmt: skip
MARKERS = "os^D"


def draw(page: Page, folder: Path) -> dict[int, Path]:
    """Every chart and gallery into ``folder``; the files by the block's place in the page."""
    files: dict[int, Path] = {}
    for place, block in enumerate(page.blocks()):
        if isinstance(block, Chart | Gallery | Figure):
            path = folder / f"{len(files) + 1:02d}-{slug(block.title)}.png"
            match block:
                case Chart():
                    save(plot(block), path)
                case Gallery():
                    save(_sheet(block), path)
                case Figure():
                    write_bytes(path, block.image)
            files[place] = path
    return files


def plot(chart: Chart) -> Canvas:
    rows = len(chart.categories) * len(chart.series) if chart.kind == "bars" else 0
    height = {"bars": 1 + 0.22 * rows, "heat": 1 + 0.3 * len(chart.series)}.get(chart.kind, 3.6)
    figure = Canvas(figsize=(7, max(2.4, height)))
    axes = figure.add_subplot()
    {"bars": _bars, "lines": _lines, "heat": _heat}[chart.kind](axes, chart)
    axes.set_title(_text(chart.title), fontsize=10, wrap=True)
    if chart.kind != "heat" and chart.series:
        axes.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=3)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _bars(axes: Axes, chart: Chart) -> None:
    """Lying, the first category at the top, as on the page."""
    width = 0.8 / len(chart.series)
    for k, series in enumerate(chart.series):
        where = np.arange(len(series.y)) + (k - (len(chart.series) - 1) / 2) * width
        axes.barh(
            where, _filled(series.y), width, label=_text(series.name), xerr=_errors(series),
            color=_colour(series), alpha=0.5 if series.dashed else 1,
            error_kw={"linewidth": 1}, hatch="//" if series.dashed else None,
        )  # fmt: skip
    axes.set_yticks(range(len(chart.categories)), [_text(c) for c in chart.categories])
    axes.invert_yaxis()
    axes.set_xlabel(_text(chart.y_label))
    if chart.y_range:
        axes.set_xlim(*map(float, chart.y_range))


def _lines(axes: Axes, chart: Chart) -> None:
    for series in chart.series:
        axes.errorbar(
            series.x, _filled(series.y), yerr=_errors(series), label=_text(series.name),
            color=_colour(series), marker=MARKERS[series.colour % len(MARKERS)], markersize=4,
            linestyle="--" if series.dashed else "-", capsize=2,
        )  # fmt: skip
    for where, _ in chart.marks:
        axes.axvline(float(where), color="grey", linestyle=":", linewidth=1)
    if chart.diagonal:
        axes.plot([0, 100], [0, 100], color="grey", linestyle=":", linewidth=1)
    if chart.y_range:
        axes.set_ylim(*map(float, chart.y_range))
    axes.set_xlabel(_text(chart.x_label))
    axes.set_ylabel(_text(chart.y_label))


def _heat(axes: Axes, chart: Chart) -> None:
    values = np.array([_filled(series.y) for series in chart.series])
    low, high = chart.y_range or (np.nanmin(values), np.nanmax(values))
    axes.imshow(values, cmap="Blues", aspect="auto", vmin=float(low), vmax=float(high))
    axes.set_yticks(range(len(chart.series)), [_text(s.name) for s in chart.series], fontsize=8)
    axes.set_xticks(range(len(chart.categories)), [_text(c) for c in chart.categories])
    middle = (low + high) / 2
    for (row, column), value in np.ndenumerate(values):
        ink = "white" if value > middle else "black"
        axes.text(column, row, f"{value:.0f}", ha="center", va="center", fontsize=7, color=ink)
    axes.set_xlabel(_text(chart.x_label))


def _sheet(gallery: Gallery) -> Canvas:
    figure = Canvas(figsize=(1.1 * len(gallery.pictures) + 1, 1.35 * len(gallery.rows) + 0.5))
    grid = figure.subplots(len(gallery.rows), len(gallery.pictures), squeeze=False)
    for column, picture in enumerate(gallery.pictures):
        for row, (image, caption) in enumerate(zip(picture.images, picture.captions, strict=True)):
            axes = grid[row][column]
            axes.axis("off")
            axes.imshow(np.asarray(Image.open(BytesIO(image))), cmap="gray", vmin=0, vmax=255)
            axes.set_title(_text(caption), fontsize=6)
    figure.suptitle(_text(gallery.title), fontsize=9)
    return figure


def _filled(values: tuple[float | int | None, ...]) -> list[float]:
    return [float("nan") if v is None else float(v) for v in values]


def _errors(series: Series) -> np.ndarray | None:
    if not series.low or not series.high:
        return None
    y, low, high = (np.array(_filled(v)) for v in (series.y, series.low, series.high))
    return np.nan_to_num(np.maximum([y - low, high - y], 0))


def _colour(series: Series) -> str:
    return COLOURS[series.colour % len(COLOURS)]


def _text(text: str) -> str:
    """A dollar sign would begin a formula."""
    return text.replace("$", r"\$")
