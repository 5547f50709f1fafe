"""The study of ME-ADA's settings: what each does to accuracy on unseen domains."""

import math
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from scipy.stats import studentized_range

from meada.evaluation.statistics import LEVEL, Summary, summarise
from meada.recipe import Recipe
from meada.reports.digits import COLUMNS, TITLES, score_of, summary
from meada.reports.pictures import COLOURS
from meada.reports.runs import Run
from meada.reports.text import head, line, spread
from meada.reproduce.item import alike
from meada.reproduce.sets import SHORT, STUDY, Value, short

Values = dict[Value, list[Run]]
NAMES = {"beta": "beta", "gamma": "gamma", "step_size": "eta (step_size)",
         "steps": "T_max (steps)", "grow": "growth rule", "units": "units"}  # fmt: skip


def of_study(runs: Sequence[Run]) -> list[Run]:
    """Runs of the set ``sensitivity``, settings and length as it has them."""
    return [run for run in runs if run.settings.name.startswith("sensitivity/") and place(run)]


def place(run: Run) -> tuple[str, Value] | None:
    """The setting that a run changes, and its value; ``centre`` and ``erm`` change none."""
    if run.method == "erm":
        return ("erm", "") if alike(run.settings, short("erm", [], run.seed).recipe) else None
    changed = [k for k in STUDY if run.settings.method.get(k) != STUDY[k][0]]
    if not changed:
        return ("centre", "") if alike(run.settings, asked(run.seed)) else None
    new = run.settings.method[changed[0]]
    if len(changed) > 1 or not alike(run.settings, asked(run.seed, f"method.{changed[0]}={new}")):
        return None
    return changed[0], new


def asked(seed: int, *changes: str) -> Recipe:
    return short("meada", [*changes], seed).recipe


def grouped(runs: Sequence[Run]) -> dict[str, Values]:
    """Setting -> value -> runs, the centre's among them; ``erm`` apart."""
    places = [(place(run), run) for run in runs]
    centre = [run for where, run in places if where == ("centre", "")]
    groups: dict[str, Values] = {"erm": {"": [r for where, r in places if where == ("erm", "")]}}
    for setting, (paper, *_) in STUDY.items():
        values: Values = {paper: centre}
        for where, run in places:
            if where and where[0] == setting:
                values.setdefault(where[1], []).append(run)
        groups[setting] = dict(sorted(values.items(), key=lambda item: _order(item[0])))
    return groups


def _order(value: Value) -> tuple[float, str]:
    return (float(value), "") if not isinstance(value, str) else (0.0, value)


def accuracy(runs: Sequence[Run], rule: str = "last") -> Summary:
    return summary(runs, rule, "mean")


def reach(values: Mapping[Value, Sequence[Run]]) -> float:
    """How far the means over seeds lie apart."""
    means = [accuracy(runs).mean for runs in values.values() if runs]
    return max(means) - min(means)


def between_seeds(runs: Sequence[Run]) -> tuple[float, int] | None:
    """Standard deviation of equal settings with other seeds, pooled, and its degrees of freedom."""
    equal: dict[tuple[str, Value] | None, list[Run]] = {}
    for run in runs:
        equal.setdefault(place(run), []).append(run)
    told = [accuracy(group) for group in equal.values() if len(group) > 1]
    freedom = sum(s.n - 1 for s in told)
    if not freedom:
        return None
    return math.sqrt(sum((s.n - 1) * (s.std or 0.0) ** 2 for s in told) / freedom), freedom


def by_chance(values: Mapping[Value, Sequence[Run]], deviation: float, freedom: int) -> float:
    """The reach that as many values would not exceed in 95 of 100 studies if none mattered.

    Tukey's studentised range; for groups of unequal size, the harmonic mean of the sizes.
    """
    sizes = [len(runs) for runs in values.values() if runs]
    each = len(sizes) / sum(1 / n for n in sizes)
    return float(studentized_range.ppf(LEVEL, len(sizes), freedom)) * deviation / math.sqrt(each)


def section(runs: Sequence[Run]) -> list[str]:
    """A line a value, settings with the widest reach first."""
    groups = grouped(runs)
    erm = groups.pop("erm")[""]
    whole = {k: v for k, v in groups.items() if sum(map(bool, v.values())) > 1}
    order = sorted(whole, key=lambda setting: -reach(whole[setting]))
    spread_of = between_seeds(runs)
    ranks = [f"{NAMES[k]} ({told_reach(whole[k], spread_of)})" for k in order]
    table = head("setting", "value", *(TITLES[d] for d in COLUMNS), "minutes", "n")
    if erm:
        table.append(_row("(ERM)", "", erm))
    for setting in order:
        paper = STUDY[setting][0]
        for value, group in whole[setting].items():
            if group:
                named = f"{value:g}" if not isinstance(value, str) else value
                table.append(_row(NAMES[setting], named + " (paper)" * (value == paper), group))
    missing = [
        f"{NAMES[k]} = {v}" for k, values in STUDY.items() for v in values if not groups[k].get(v)
    ]
    pictures = [f"![{NAMES[k]}](figures/sensitivity-{k}.png)" for k in order]
    return [
        f"Short runs ({', '.join(SHORT)}), one setting of ME-ADA changed at a time; checkpoint: "
        f"last; {len(runs)} runs. From `meada reproduce sensitivity`. Accuracies of runs this "
        "short are below Table 1's; what counts is how far a setting moves them, beside the "
        "spread over seeds.",
        "",
        "In the order in which to touch them, with the points between a setting's best and worst "
        "value: " + "; ".join(ranks) + ". " + told_noise(spread_of),
        "",
        *table,
        *(["", f"Without a finished run: {', '.join(missing)}."] if missing else []),
        "",
        *pictures,
    ]


def told_reach(values: Values, spread_of: tuple[float, int] | None) -> str:
    told = f"{reach(values):.1f} points"
    if spread_of is None:
        return told
    chance = by_chance(values, *spread_of)
    return f"{told}, {'beyond' if reach(values) > chance else 'within'} the {chance:.1f} of chance"


def told_noise(spread_of: tuple[float, int] | None) -> str:
    if spread_of is None:
        return "One seed each: how much of that is chance is not known."
    return (
        f"Equal settings with other seeds have a standard deviation of {spread_of[0]:.1f} points "
        f"({spread_of[1]} degrees of freedom). *Chance*: the reach that as many values have in 19 "
        "of 20 such studies at most if none of them matters (Tukey's studentised range)."
    )


def _row(setting: str, value: str, runs: Sequence[Run]) -> str:
    cells = [spread(summary(runs, "last", d)) for d in COLUMNS]
    minutes = summarise([sum(r.record["seconds"].values()) / 60 for r in runs])
    return line(setting, value, *cells, f"{minutes.mean:.1f}", str(len(runs)))


def pictures(runs: Sequence[Run]) -> dict[str, Figure]:
    """One figure a setting that has two values or more."""
    groups = grouped(runs)
    erm = groups.pop("erm")[""]
    return {
        setting: picture(setting, values, erm)
        for setting, values in groups.items()
        if sum(map(bool, values.values())) > 1
    }


def picture(setting: str, values: Values, erm: Sequence[Run]) -> Figure:
    """Each run a point, the mean a line; values evenly spaced, as they span orders of magnitude."""
    there = {value: runs for value, runs in values.items() if runs}
    figure = Figure(figsize=(4, 2.6))
    axes = figure.add_subplot()
    for where, runs in enumerate(there.values()):
        points = [score_of(run, "last", "mean") for run in runs]
        axes.plot([where] * len(points), points, "o", color=COLOURS["meada"], markersize=4)
    means = [accuracy(runs).mean for runs in there.values()]
    style = "none" if isinstance(next(iter(there)), str) else "-"  # names have no order
    axes.plot(range(len(means)), means, "_", linestyle=style, color=COLOURS["meada"], markersize=16)
    if erm:
        axes.axhline(accuracy(erm).mean, color=COLOURS["erm"], linestyle="--", label="ERM")
        axes.legend(fontsize=7)
    names = [v if isinstance(v, str) else f"{v:g}" for v in there]
    marks = [
        f"{n}\n(paper)" if v == STUDY[setting][0] else n for n, v in zip(names, there, strict=True)
    ]
    axes.set_xticks(range(len(marks)), marks, fontsize=8)
    axes.set_xlim(-0.5, len(marks) - 0.5)
    axes.set_xlabel(NAMES[setting], fontsize=9)
    axes.set_ylabel("mean of three (%)", fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
