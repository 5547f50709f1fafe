"""The study of ME-ADA's settings: what each does to accuracy on unseen domains."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from meada.evaluation.statistics import Summary, residual, summarise, tukey_range
from meada.reports.digits import COLUMNS, TITLES, score_of, summary
from meada.reports.pictures import COLOURS
from meada.reports.runs import Run
from meada.reports.text import head, line, spread
from meada.reproduce.sets import SHORT, STUDY, Value, short
from meada.runs.identity import alike
from meada.runs.recipe import Recipe

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


def common(values: Mapping[Value, Sequence[Run]]) -> Values:
    """Of each value that was run, the runs with the seeds that all of them have.

    Runs with one seed begin with the same weights and see the same batches; a value with a lucky
    seed more would look better than it is.
    """
    there = {value: runs for value, runs in values.items() if runs}
    seeds = set.intersection(*({run.seed for run in runs} for runs in there.values()))
    return {value: [run for run in runs if run.seed in seeds] for value, runs in there.items()}


def comparable(values: Mapping[Value, Sequence[Run]]) -> bool:
    """Whether two values or more were run, with a seed that all of them have."""
    return sum(map(bool, values.values())) > 1 and all(common(values).values())


def reach(values: Mapping[Value, Sequence[Run]]) -> float:
    """How far the means over the same seeds lie apart."""
    means = [accuracy(runs).mean for runs in common(values).values()]
    return max(means) - min(means)


def within_seeds(runs: Sequence[Run]) -> tuple[float, int] | None:
    """Standard deviation of what neither seed nor setting explains, and its degrees of freedom.

    Accuracy is taken as a sum of an effect of the settings and one of the seed, by least squares.
    """
    scores = [score_of(run, "last", "mean") for run in runs]
    return residual(scores, [place(run) for run in runs], [run.seed for run in runs])


def by_chance(values: Mapping[Value, Sequence[Run]], deviation: float, freedom: int) -> float:
    """The reach that as many values would not exceed in 95 of 100 studies if none mattered.

    Tukey's studentised range, for means over the seeds that all values have.
    """
    means = common(values)
    each = len(next(iter(means.values())))
    return tukey_range(len(means), each, deviation, freedom)


def section(runs: Sequence[Run]) -> list[str]:
    """A line a value, settings with the widest reach first."""
    groups = grouped(runs)
    erm = groups.pop("erm")[""]
    whole = {k: v for k, v in groups.items() if comparable(v)}
    order = sorted(whole, key=lambda setting: -reach(whole[setting]))
    left = within_seeds(runs)
    ranks = [f"{NAMES[k]} ({told_reach(whole[k], left)})" for k in order]
    table = head("setting", "value", *(TITLES[d] for d in COLUMNS), "minutes", "n")
    if erm:
        table.append(_row("(ERM)", "", erm))
    for setting in order:
        paper = STUDY[setting][0]
        for value, group in whole[setting].items():
            if group:
                named = f"{value:g}" if not isinstance(value, str) else value
                table.append(_row(NAMES[setting], named + " (paper)" * (value == paper), group))
    missing = [f"{NAMES[k]} = {v}" for k, values in STUDY.items() for v in values if not groups[k].get(v)]
    pictures = [f"![{NAMES[k]}](figures/sensitivity-{k}.png)" for k in order]
    return [
        f"Short runs ({', '.join(SHORT)}), one setting of ME-ADA changed at a time; checkpoint: "
        f"last; {len(runs)} runs. From `meada reproduce sensitivity`. Accuracies of runs this "
        "short are below Table 1's; what counts is how far a setting moves them, beside the "
        "spread over seeds.",
        "",
        "In the order in which to touch them, with the points between a setting's best and worst "
        "value: " + "; ".join(ranks) + ". " + told_noise(left),
        "",
        *table,
        *(["", f"Without a finished run: {', '.join(missing)}."] if missing else []),
        "",
        *pictures,
    ]


def told_reach(values: Values, left: tuple[float, int] | None) -> str:
    told = f"{reach(values):.1f} points"
    if left is None:
        return told
    chance = by_chance(values, *left)
    return f"{told}, {'beyond' if reach(values) > chance else 'within'} the {chance:.1f} of chance"


def told_noise(left: tuple[float, int] | None) -> str:
    if left is None:
        return "How much of that is chance is not known: too few settings have two seeds."
    return (
        "Values are compared at the seeds that all of a setting's values have. What neither seed "
        f"nor setting explains has a standard deviation of {left[0]:.1f} points ({left[1]} degrees "
        "of freedom). *Chance*: the reach that as many values have in 19 of 20 such studies at "
        "most if none of them matters (Tukey's studentised range)."
    )


def _row(setting: str, value: str, runs: Sequence[Run]) -> str:
    cells = [spread(summary(runs, "last", d)) for d in COLUMNS]
    minutes = summarise([sum(r.record["seconds"].values()) / 60 for r in runs])
    return line(setting, value, *cells, f"{minutes.mean:.1f}", str(len(runs)))


def pictures(runs: Sequence[Run]) -> dict[str, Figure]:
    """One figure a setting whose values can be compared."""
    groups = grouped(runs)
    erm = groups.pop("erm")[""]
    return {setting: picture(setting, values, erm) for setting, values in groups.items() if comparable(values)}


def picture(setting: str, values: Values, erm: Sequence[Run]) -> Figure:
    """Each run a point, the mean over the seeds that all values have a line.

    Values are evenly spaced, as they span orders of magnitude.
    """
    there = {value: runs for value, runs in values.items() if runs}
    figure = Figure(figsize=(4, 2.6))
    axes = figure.add_subplot()
    for where, runs in enumerate(there.values()):
        points = [score_of(run, "last", "mean") for run in runs]
        axes.plot([where] * len(points), points, "o", color=COLOURS["meada"], markersize=4)
    means = [accuracy(runs).mean for runs in common(there).values()]
    style = "none" if isinstance(next(iter(there)), str) else "-"  # names have no order
    axes.plot(range(len(means)), means, "_", linestyle=style, color=COLOURS["meada"], markersize=16)
    if erm:
        axes.axhline(accuracy(erm).mean, color=COLOURS["erm"], linestyle="--", label="ERM")
        axes.legend(fontsize=7)
    names = [v if isinstance(v, str) else f"{v:g}" for v in there]
    marks = [f"{n}\n(paper)" if v == STUDY[setting][0] else n for n, v in zip(names, there, strict=True)]
    axes.set_xticks(range(len(marks)), marks, fontsize=8)
    axes.set_xlim(-0.5, len(marks) - 0.5)
    axes.set_xlabel(NAMES[setting], fontsize=9)
    axes.set_ylabel("mean of three (%)", fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
