"""Draw every chart with matplotlib: as SVG inside an HTML page, or as PNG next to Markdown."""

import re
from io import BytesIO, StringIO
from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import LogLocator, NullFormatter
from PIL import Image

from meada.files import write_bytes
from meada.reports.page.blocks import Chart, Gallery, Page, Series, slug

matplotlib.use("Agg")
# Legible on white and on the dark page's ground, and apart from each other for the colour-blind.
COLOURS = ("#477387", "#ed1900", "#822dff", "#8eaa5d", "#a81bb8", "#c18cdc", "#34b397", "#805947")
MARKERS = "os^vP*X"  # 7 of them and 8 colours: the first 56 series look different; a diamond is the paper's
DIAMOND: dict[str, Any] = {"marker": "D", "linestyle": "none", "markerfacecolor": "none"}  # the paper's value
INK = "#000000"  # whatever has it in the SVG takes the page's own colour of text


def draw(page: Page, folder: Path) -> dict[int, Path]:
    """Draw every chart and gallery as a file in ``folder``; return the files by the block's position in the page."""
    files, blocks = picture_files(page, folder), list(page.blocks())
    for place, path in files.items():
        block = blocks[place]
        save(plot(block) if isinstance(block, Chart) else sheet(block), path)  # type: ignore[arg-type]
    return files


def picture_files(page: Page, folder: Path) -> dict[int, Path]:
    """The files that :func:`draw` makes."""
    files: dict[int, Path] = {}
    for place, block in enumerate(page.blocks()):
        if isinstance(block, Chart | Gallery):
            number = "" if block.name else f"{len(files) + 1:02d}-"
            files[place] = folder / f"{number}{slug(block.name or block.title)}.png"
    return files


def save(figure: Canvas, path: Path) -> None:
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=110, bbox_inches="tight")
    write_bytes(path, buffer.getvalue())


def svg(chart: Chart, salt: str) -> str:
    """SVG for an HTML page: transparent, with the page's colour and font, and unique ids (``salt``)."""
    buffer = StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": salt, "font.family": "sans-serif"}):
        figure = plot(chart, titled=False)
        figure.savefig(buffer, format="svg", transparent=True, bbox_inches="tight", metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    start, end, rest = text.partition(">")
    text = re.sub(r' (width|height)="[^"]*"', "", start) + end + rest
    text = text.replace(INK, "currentColor").replace("<text ", '<text fill="currentColor" ')
    ids = re.sub(r'id="([^"]+)"', rf'id="{salt}-\1"', text)
    return re.sub(r'(url\(#|href="#)', rf"\g<1>{salt}-", ids)


def plot(chart: Chart, *, titled: bool = True) -> Canvas:
    if chart.kind == "panels":
        return _panels(chart, titled)
    rows = len(chart.categories) * len(chart.series) if chart.kind in ("bars", "points") else 0
    height = {"bars": 1 + 0.22 * rows, "points": 1 + 0.13 * rows, "heat": 1 + 0.3 * len(chart.series)}
    width = 4.6 if chart.small else 7
    figure = Canvas(figsize=(width, max(2.4, height.get(chart.kind, 0.52 * width))))
    axes = figure.add_subplot()
    {"bars": _bars, "points": _bars, "lines": _lines, "heat": _heat}[chart.kind](axes, chart)
    if any(series.paper for series in chart.series):
        axes.plot([], [], color=INK, label="the paper", **DIAMOND)
    if titled:
        axes.set_title(_text(chart.title), fontsize=10)
    if chart.kind != "heat" and chart.series:
        longest = max(len(line) for series in chart.series for line in _text(series.name).split("\n"))
        axes.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.5 / figure.get_figheight()), frameon=False,
                    ncols=max(1, int(width / (0.07 * longest + 0.5))), labelcolor=INK)  # fmt: skip
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _panels(chart: Chart, titled: bool) -> Canvas:
    """Label rows at the side, so that nothing is shown by colour alone."""
    count = len(chart.series)
    width = max(4.6, max(len(s.name) for s in chart.series) * 0.065 + 1.75 * len(chart.categories))
    figure = Canvas(figsize=(width, max(1.1 + 0.24 * count, width / 3)), layout="constrained")  # for narrow screens
    grid = figure.subplots(1, len(chart.categories), sharey=True, squeeze=False)[0]
    for k, (axes, category) in enumerate(zip(grid, chart.categories, strict=True)):
        for row, series in enumerate(chart.series):
            errors = _errors(series)
            axes.errorbar(_filled(series.y)[k], row, xerr=None if errors is None else errors[:, k : k + 1], fmt="o",
                          markersize=4.5, capsize=2, color=_colour(series))  # fmt: skip
            if series.paper:
                axes.plot(_filled(series.paper)[k], row, color=INK, markersize=6.5, **DIAMOND)
        axes.set_title(fill(category, 20), fontsize=9)
        axes.margins(x=0.08)
        if chart.y_range:
            axes.set_xlim(*map(float, chart.y_range))
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
    grid[0].set_yticks(range(count), [_text(s.name) for s in chart.series])
    grid[0].set_ylim(count - 0.5, -0.5)
    figure.supxlabel(_text(chart.y_label), fontsize=9)
    if titled:
        figure.suptitle(fill(chart.title, 80), fontsize=10)
    return figure


def _bars(axes: Axes, chart: Chart) -> None:
    """Horizontal bars, which leave room for long names; the first category is at the top."""
    width = 0.8 / max(len(chart.series), 1)
    for k, series in enumerate(chart.series):
        where = np.arange(len(series.y)) + (k - (len(chart.series) - 1) / 2) * width
        look: dict[str, Any] = {"color": _colour(series), "label": _text(series.name)}
        if chart.kind == "points":
            marker = MARKERS[series.colour % len(MARKERS)]
            axes.errorbar(_filled(series.y), where, xerr=_errors(series), fmt=marker, markersize=5, capsize=2, **look)
        else:
            axes.barh(where, _filled(series.y), width, xerr=_errors(series), alpha=0.5 if series.dashed else 1,
                      error_kw={"linewidth": 1}, hatch="//" if series.dashed else None, **look)  # fmt: skip
        if series.paper:
            axes.plot(_filled(series.paper), where, color=_colour(series), markersize=6, **DIAMOND)
    axes.set_yticks(range(len(chart.categories)), [_text(c) for c in chart.categories])
    axes.set_ylim(len(chart.categories) - 0.5, -0.5)
    axes.set_xlabel(_text(chart.y_label))
    axes.grid(axis="x", alpha=0.25)
    if chart.y_range:
        axes.set_xlim(*map(float, chart.y_range))


def _lines(axes: Axes, chart: Chart) -> None:
    xs = {x for series in chart.series for x in series.x}
    # Where bars of several series would lie on each other, each series is moved a little to the side.
    crowded = sum(_errors(series) is not None for series in chart.series) > 1 and len(xs) <= 12
    for k, series in enumerate(chart.series):
        aside = 0.02 * (max(xs) - min(xs)) * (k - (len(chart.series) - 1) / 2) if crowded else 0.0
        where, errors = np.array(series.x) + aside, _errors(series)
        many, marker = len(series.x) > 12, MARKERS[series.colour % len(MARKERS)]
        look: dict[str, Any] = {"color": _colour(series), "label": _text(series.name), "marker": marker}
        repeated = series.colour >= len(COLOURS)  # the second series of a colour
        style = "none" if series.loose else "--" if series.dashed else "-." if repeated else "-"
        if many and errors is not None:
            axes.fill_between(series.x, _filled(series.low), _filled(series.high), color=_colour(series), alpha=0.18)
        if series.paper:
            axes.plot(where, _filled(series.paper), color=_colour(series), markersize=7, **DIAMOND)
        axes.errorbar(where, _filled(series.y), yerr=None if many else errors, markersize=2 if many else 4,
                      linestyle=style, capsize=2, markevery=[0] if series.dashed else None, **look)  # fmt: skip
    for at, name in chart.marks:
        axes.axvline(float(at), color="grey", linestyle=":", linewidth=1)
        round_ = _text(name.removeprefix("round "))
        axes.annotate(round_, (float(at), 1), xycoords=("data", "axes fraction"), fontsize=7)
    if chart.diagonal:
        axes.plot([0, 100], [0, 100], color="grey", linestyle=":", linewidth=1)
    if chart.log_x:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter(NullFormatter())
    if chart.categories:  # names in place of the numbers 0, 1, 2
        axes.set_xticks(range(len(chart.categories)), [_text(c) for c in chart.categories])
    elif xs and len(xs) < 8 and all(x == int(x) for x in xs):
        axes.set_xticks(sorted(xs))
    if chart.y_range:
        axes.set_ylim(*map(float, chart.y_range))
    axes.set_xlabel(_text(chart.x_label))
    axes.set_ylabel(_text(chart.y_label))
    axes.grid(axis="y", alpha=0.25)


def _heat(axes: Axes, chart: Chart) -> None:
    values = np.array([_filled(series.y) for series in chart.series])
    low, high = chart.y_range or (np.nanmin(values), np.nanmax(values))
    axes.imshow(values, cmap="Blues", aspect="auto", vmin=float(low), vmax=float(high))
    axes.set_yticks(range(len(chart.series)), [_text(s.name) for s in chart.series], fontsize=8)
    axes.set_xticks(range(len(chart.categories)), [_text(c) for c in chart.categories])
    for (row, column), value in np.ndenumerate(values):
        ink = "white" if value > low + 0.6 * (high - low) else "#000001"  # not the page's ink: cells have a ground
        axes.text(column, row, f"{value:.0f}", ha="center", va="center", fontsize=7, color=ink)
    axes.set_xlabel(_text(chart.x_label))


def sheet(gallery: Gallery) -> Canvas:
    figure = Canvas(figsize=(1.1 * len(gallery.pictures) + 1, 1.35 * len(gallery.rows) + 0.5))
    grid = figure.subplots(len(gallery.rows), len(gallery.pictures), squeeze=False)
    for column, picture in enumerate(gallery.pictures):
        for row, (image, caption) in enumerate(zip(picture.images, picture.captions, strict=True)):
            axes = grid[row][column]
            axes.axis("off")
            axes.imshow(np.asarray(Image.open(BytesIO(image))), cmap="gray", vmin=0, vmax=255)
            axes.set_title(_text(caption), fontsize=6)
    for name, line in zip(gallery.rows, grid, strict=True):
        line[0].text(-0.15, 0.5, _text(name), transform=line[0].transAxes, ha="right", va="center", fontsize=7)
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
    """Wrap text and escape dollar signs, which would begin a formula."""
    return fill(text.replace("$", r"\$"), 48, break_long_words=False)
