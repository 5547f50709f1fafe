"""Figure 1: accuracy against K on each target, ADA beside ME-ADA, ERM as a line."""

from collections.abc import Collection, Sequence

from matplotlib.figure import Figure

from meada.reports.digits import COLUMNS, TITLES, by_method, rounds, score_of
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
    names = {
        method: told(method, [len(group) for (m, _), group in groups.items() if m == method]) for method, _ in groups
    }
    figure = Figure(figsize=(11, 3.2), layout="constrained")
    for axes, domain in zip(figure.subplots(1, 4), COLUMNS, strict=True):
        scores = {at: [score_of(run, rule, domain) for run in group] for at, group in groups.items()}
        for (method, k), values in scores.items():
            mean = sum(values) / len(values)
            if method == "erm":
                axes.axhline(mean, color="#c0392b", label=names[method])
                continue
            where = several.index(k) + (-0.19 if method == "ada" else 0.19)
            axes.bar(where, mean, 0.36, color=COLOURS[method], label=names[method])
            axes.vlines(where, min(values), max(values), color="black")
        lowest = min(min(values) for values in scores.values())
        axes.set_ylim(bottom=max(0.0, lowest - 5))  # differences are small beside 0 to 100
        axes.set_xticks(range(len(several)), [f"K = {k}" for k in several])
        axes.set_title(TITLES[domain], fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel(f"accuracy (%), {rule}")
    drawn, labels = figure.axes[-1].get_legend_handles_labels()
    once = dict(zip(labels, drawn, strict=True))
    figure.legend(once.values(), once, fontsize=7, loc="outside lower center", ncols=len(once))
    return figure


def told(method: str, sizes: Collection[int]) -> str:
    """A method and how many runs its means are of: one number, or from the least to the most.

    >>> told("ada", [2, 1, 3]), told("meada", [3, 3])
    ('ada (n = 1 to 3)', 'meada (n = 3)')
    """
    ends = sorted({min(sizes), max(sizes)})
    return f"{method} (n = {' to '.join(map(str, ends))})"
