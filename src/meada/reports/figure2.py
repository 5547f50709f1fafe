"""Figure 2: accuracy under each of the fifteen corruptions, ERM against ME-ADA."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from meada.corruptions import CORRUPTIONS
from meada.reports.cifar import Cell, Row, title
from meada.reports.pictures import COLOURS

METHODS = ("erm", "meada")


def figure2(row: Row, cells: Mapping[str, Cell], rule: str = "last", methods: Sequence[str] = METHODS) -> Figure:
    """Bars over all severities of a corruption; a line of its spread where there are seeds."""
    figure = Figure(figsize=(11, 4))
    axes = figure.add_subplot()
    width = 0.8 / len(methods)
    for place, method in enumerate(methods):
        runs = [run.results(rule) for run in cells[method].runs]
        each = np.array([[run[name]["accuracy"] for name in CORRUPTIONS] for run in runs])
        where = np.arange(len(CORRUPTIONS)) + (place - (len(methods) - 1) / 2) * width
        spread = each.std(0, ddof=1) if len(runs) > 1 else None
        label = f"{title(method)} (mean {each.mean():.1f} %, n={len(runs)})"
        axes.bar(where, each.mean(0), width, yerr=spread, label=label, color=COLOURS.get(method))
    names = [name.replace("_", "\n") for name in CORRUPTIONS]
    axes.set_xticks(range(len(names)), names, fontsize=7)
    axes.set_ylabel("accuracy (%)")
    axes.set_title(f"{row}; checkpoint: {rule}", fontsize=9)
    axes.legend(fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
