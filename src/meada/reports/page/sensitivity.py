"""The study of ME-ADA's settings: how far each moves accuracy on unseen domains."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from operator import itemgetter

from meada.evaluation.statistics import residual, summarise, tukey_range
from meada.reports.page.blocks import Cell, Chart, Section, Series, Table, Text
from meada.reports.page.cost import spread
from meada.reports.page.groups import COLOURS
from meada.reports.runs import Run
from meada.reproduce.sets import SHORT, STUDY, Value, short
from meada.runs.identity import same_experiment

Values = dict[Value, list[Run]]
NAMES = {"beta": "beta", "gamma": "gamma", "step_size": "eta (step_size)",
         "steps": "T_max (steps)", "grow": "growth rule", "units": "units"}  # fmt: skip


def of_study(runs: Sequence[Run]) -> list[Run]:
    """Runs with the settings and length of the set ``sensitivity``."""
    return [run for run in runs if run.settings.name.startswith("sensitivity/") and place(run)]


def place(run: Run) -> tuple[str, Value] | None:
    """The setting that a run changes, and its value; ``centre`` and ``erm`` change none."""
    changed = [k for k in STUDY if run.method != "erm" and run.settings.method.get(k) != STUDY[k][0]]
    if len(changed) > 1:
        return None
    values = [f"method.{k}={run.settings.method[k]}" for k in changed]
    if not same_experiment(run.settings, short(run.method, values, run.seed).recipe):
        return None
    if changed:
        return changed[0], run.settings.method[changed[0]]
    return "erm" if run.method == "erm" else "centre", ""


def grouped(runs: Sequence[Run]) -> dict[str, Values]:
    """Setting -> value -> runs, including the centre's; ``erm`` is separate."""
    places: dict[tuple[str, Value] | None, list[Run]] = defaultdict(list)
    for run in runs:
        places[place(run)].append(run)
    found: dict[str, Values] = {"erm": {"": places["erm", ""]}}
    for setting, (paper, *_) in STUDY.items():
        values = {where[1]: held for where, held in places.items() if where and where[0] == setting}
        found[setting] = dict(sorted({paper: places["centre", ""], **values}.items(), key=itemgetter(0)))
    return found


def common(values: Mapping[Value, Sequence[Run]]) -> Values:
    """For each value, the runs with seeds common to all values.

    Runs with one seed begin with the same weights and see the same batches; a value with a lucky seed more would look
    better than it is.
    """
    seeds = set.intersection(*({run.seed for run in runs} for runs in values.values()))
    return {value: [run for run in runs if run.seed in seeds] for value, runs in values.items()}


class Study:
    """Runs of the study, scored by their mean over ``domains`` at the last step."""

    def __init__(self, runs: Sequence[Run], domains: Sequence[str]) -> None:
        self.runs, self.domains = runs, domains
        found = grouped(runs)
        self.erm = found.pop("erm")[""]
        there = {k: {value: held for value, held in v.items() if held} for k, v in found.items()}
        self.settings = {k: v for k, v in there.items() if len(v) > 1 and all(common(v).values())}
        self.missing = [f"{NAMES[k]} = {v}" for k, values in STUDY.items() for v in values if not found[k].get(v)]
        scores = [self.score(run) for run in runs]
        self.noise = residual(scores, [place(run) for run in runs], [run.seed for run in runs])

    def score(self, run: Run, domain: str = "mean") -> float:
        return run.score("last", domain, self.domains)

    def means(self, values: Mapping[Value, Sequence[Run]]) -> list[float]:
        """Mean by value, over the seeds common to all values."""
        return [summarise([self.score(run) for run in runs]).mean for runs in common(values).values()]

    def reach(self, setting: str) -> float:
        """Range of accuracy: best minus worst value."""
        means = self.means(self.settings[setting])
        return max(means) - min(means)

    def chance(self, setting: str) -> float | None:
        """95th percentile of the range if no value mattered (Tukey's studentised range)."""
        means = common(self.settings[setting])
        each = len(next(iter(means.values())))
        return None if self.noise is None else tukey_range(len(means), each, *self.noise)


def sensitivity(runs: Sequence[Run], domains: Sequence[str]) -> Section:
    """Section with a row per value, settings with the widest range first."""
    study = Study(runs, domains)
    order = sorted(study.settings, key=lambda setting: -study.reach(setting))
    columns = ("setting", "value", *domains, "mean", "minutes", "n")
    rows = [_row(study, "(ERM)", "", study.erm)] if study.erm else []
    reached = []
    for setting in order:
        rows += [_row(study, NAMES[setting], _named(setting, v), group) for v, group in study.settings[setting].items()]
        reach, chance = study.reach(setting), study.chance(setting)
        word = f", {'beyond' if reach > chance else 'within'} the {chance:.1f} of chance" if chance is not None else ""
        reached.append(f"{NAMES[setting]} ({reach:.1f} points{word})")
    noise = "How much of that is chance is not known: too few settings have two seeds."
    if study.noise is not None:
        noise = (
            "Values are compared at the seeds that all of a setting's values have. The residual standard deviation, "
            "explained by neither seed nor setting, is "
            f"{study.noise[0]:.1f} points ({study.noise[1]} degrees of freedom). "
            "Chance: the reach that as many values exceed in 1 of 20 such studies if none of them matters (Tukey's "
            "studentised range)."
        )
    return Section("Which settings to tune first", (
        Text(f"Short runs ({', '.join(SHORT)}), one setting of ME-ADA changed at a time; checkpoint: the last training "
             f"step; {len(runs)} runs from `meada reproduce sensitivity`. Accuracies of runs this short are below "
             "Table 1's; what counts is how far a setting moves them, compared with the spread over seeds."),
        Text("Order of tuning, with the difference in points between a setting's best and worst value: "
             f"{'; '.join(reached)}. {noise}"),
        Table("", columns, tuple(rows)),
        *([Text(f"Without a finished run: {', '.join(study.missing)}.", "missing")] if study.missing else []),
        *(chart(study, setting) for setting in order),
    ))  # fmt: skip


def _named(setting: str, value: Value) -> str:
    text = value if isinstance(value, str) else f"{value:g}"
    return f"{text} (paper)" if value == STUDY[setting][0] else text


def _row(study: Study, setting: str, value: str, runs: Sequence[Run]) -> tuple[Cell, ...]:
    scores = [spread(summarise([study.score(run, d) for run in runs])) for d in (*study.domains, "mean")]
    return (setting, value, *scores, summarise([run.minutes for run in runs]).mean, len(runs))


def chart(study: Study, setting: str) -> Chart:
    """Chart: runs as points, means over common seeds as a line; values are evenly spaced."""
    there = study.settings[setting]
    each = [(k, study.score(run)) for k, runs in enumerate(there.values()) for run in runs]
    named = isinstance(next(iter(there)), str)  # names have no order
    series = [
        Series("each run", tuple(y for _, y in each), tuple(x for x, _ in each), colour=1, loose=True),
        Series("mean over common seeds", tuple(study.means(there)), tuple(range(len(there))),
               colour=COLOURS["meada"], loose=named),
    ]  # fmt: skip
    if study.erm:
        erm = summarise([study.score(run) for run in study.erm]).mean
        series.append(Series("ERM", (erm, erm), (0, len(there) - 1), colour=COLOURS["erm"], dashed=True))
    ticks = tuple(_named(setting, value) for value in there)
    return Chart("lines", f"{NAMES[setting]}: mean accuracy", tuple(series), NAMES[setting], "accuracy (%)", ticks,
                 small=True, name=f"sensitivity-{setting}")  # fmt: skip
