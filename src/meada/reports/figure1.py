"""Figure 1: accuracy against K on each target, ADA beside ME-ADA, ERM as a line."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from meada.reports.digits import DOMAINS, TITLES, by_method, rounds, score_of
from meada.reports.pictures import COLOURS
from meada.reports.runs import Run


def by_rounds(runs: Sequence[Run]) -> dict[tuple[str, int], list[Run]]:
    """Runs by method and K, one a seed; ERM, whose pool never grows, is K = 0."""
    groups: dict[tuple[str, int], list[Run]] = {}
    for k in sorted({rounds(run) for run in runs}):
        for method, group in by_method(run for run in runs if rounds(run) == k).items():
            if method == "erm":
                groups.setdefault((method, 0), group)
            elif method in ("ada", "meada"):
                groups[method, k] = group
    return dict(sorted(groups.items(), key=lambda item: (item[0][0] != "erm", item[0])))


def figure1(runs: Sequence[Run], rule: str = "last") -> Figure:
    """Bars are means, black lines the range of the runs."""
    groups = by_rounds(runs)
    several = sorted({k for _, k in groups if k})
    figure = Figure(figsize=(11, 3.2))
    for axes, domain in zip(figure.subplots(1, 4), (*DOMAINS, "mean"), strict=True):
        lowest = 100.0
        for place, method in enumerate(("ada", "meada")):
            for k in several:
                values = [score_of(run, rule, domain) for run in groups.get((method, k), [])]
                if not values:
                    continue
                mean, where = sum(values) / len(values), several.index(k) + (place - 0.5) * 0.38
                label = f"{method} (n={len(values)})" if k == several[0] else None
                axes.bar(where, mean, 0.36, color=COLOURS[method], label=label)
                axes.vlines(where, min(values), max(values), color="black")
                lowest = min(lowest, *values)
        if erm := [score_of(run, rule, domain) for run in groups.get(("erm", 0), [])]:
            axes.axhline(sum(erm) / len(erm), color="#c0392b", label=f"erm (n={len(erm)})")
            lowest = min(lowest, *erm)
        axes.set_ylim(bottom=max(0.0, lowest - 5))  # differences are small beside 0 to 100
        axes.set_xticks(range(len(several)), [f"K = {k}" for k in several])
        axes.set_title(TITLES[domain], fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel(f"accuracy (%), {rule}")
    figure.axes[-1].legend(fontsize=7)
    return figure
