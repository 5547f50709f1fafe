"""Which runs may be averaged (they differ in their seed alone) and which may be compared."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from meada.evaluation.statistics import Summary, summarise
from meada.reports.cifar import COLUMNS
from meada.reports.runs import Run
from meada.reports.table2 import WITH_LABELS, WITHOUT_LABELS
from meada.runs.identity import essence

TITLES = {
    **{name: title for name, (title, _) in {**WITH_LABELS, **WITHOUT_LABELS}.items()},
    **COLUMNS,
    "erm": "ERM",
    "meada-bnn": "ME-ADA (BNN)",
    "autoaugment": "AutoAugment",
    "augmix": "AugMix",
}
BASELINES = ("erm", "agg")  # what the others are held against, where one of them is there
ORDER = ("erm", "agg", "ada", "meada", "meada-bnn")
COLOURS = {"erm": 0, "agg": 0, "ada": 1, "meada": 2, "meada-bnn": 3}
SHORT = {"plan.rounds": "K", "plan.total_steps": "steps", "network.name": "network"}


@dataclass(frozen=True)
class Group:
    """Runs of one recipe, a seed each."""

    label: str
    runs: tuple[Run, ...]
    colour: int = 0

    @property
    def method(self) -> str:
        return self.runs[0].method

    @property
    def first(self) -> Run:
        return self.runs[0]

    @property
    def rounds(self) -> int:
        """The paper's K: a method that makes nothing has none, whatever its plan says."""
        if self.first.finished:
            return sum("ce" in line for line in self.first.record.get("rounds", []))
        return int(self.first.recipe.get("plan", {}).get("rounds", 0))

    def scored(self, rule: str) -> list[Run]:
        return [run for run in self.runs if run.results(rule)]

    def values(self, rule: str, domain: str, score: str = "accuracy") -> list[float]:
        """A number a seed; ``mean`` is over the domains of each run."""
        found = [run.results(rule) for run in self.scored(rule)]
        if domain == "mean":
            return [_mean([float(s[score]) for s in each.values()]) for each in found]
        return [float(each[domain][score]) for each in found]

    def summary(self, rule: str, domain: str, score: str = "accuracy") -> Summary | None:
        values = self.values(rule, domain, score)
        return summarise(values) if values else None


@dataclass(frozen=True)
class Experiment:
    """Groups that were tested on the same domains with the same network."""

    title: str
    data: str
    network: str
    domains: tuple[str, ...]
    groups: tuple[Group, ...]

    @property
    def baseline(self) -> Group:
        plain = [group for name in BASELINES for group in self.groups if group.method == name]
        return (plain or list(self.groups))[0]

    @property
    def others(self) -> list[Group]:
        return [group for group in self.groups if group is not self.baseline]

    @property
    def corrupted(self) -> bool:
        """Whether the domains are corruptions, each with its severities."""
        return any(
            "by_severity" in scores
            for group in self.groups
            for run in group.runs
            for scores in run.results("last").values()
        )

    def runs(self) -> Iterator[Run]:
        for group in self.groups:
            yield from group.runs


def experiments(runs: Sequence[Run]) -> list[Experiment]:
    """By data, network, scale and domains; in each, the plain method first."""
    places: dict[tuple[str, ...], list[Run]] = {}
    for run in runs:
        places.setdefault(_place(run), []).append(run)
    found = []
    for (data, network, scale, *domains), here in places.items():
        title = f"{data}, {network}" + ("" if scale == "1" else f", scale {scale}")
        if len(domains) == 1:
            title += f", tested on {domains[0]}"
        found.append(Experiment(title, data, network, tuple(domains), _groups(here)))
    return found


def left_out(runs: Sequence[Run]) -> list[str]:
    """Runs that tell nothing new: the same recipe and seed twice."""
    seen: dict[str, Run] = {}
    told = []
    for run in runs:
        same = seen.setdefault(f"{_settings(run)} {run.seed}", run)
        if same is not run:
            told.append(f"{run.name} is {same.name} again, and left out.")
    return told


def _place(run: Run) -> tuple[str, ...]:
    record = run.record
    domains = tuple(record["results"].get("last", {})) or tuple(
        str(name) for name in run.recipe.get("data", {}).get("targets", ())
    )
    about = (record.get("data", ""), record.get("network", ""), f"{record.get('scale', 1):g}")
    return (*map(str, about), *domains)


def _groups(runs: Sequence[Run]) -> tuple[Group, ...]:
    alike: dict[str, dict[int, Run]] = {}
    for run in runs:
        alike.setdefault(_settings(run), {}).setdefault(run.seed, run)
    members = [tuple(by_seed[s] for s in sorted(by_seed)) for by_seed in alike.values()]
    members.sort(key=lambda group: (_rank(group[0].method), _rounds(group[0])))
    chosen = colours([group[0].method for group in members])
    return tuple(map(Group, _labels(members), members, chosen))


def colours(methods: Sequence[str]) -> list[int]:
    """The same for a method on every page, as far as that goes.

    >>> colours(["erm", "meada", "meada", "mixup"])
    [0, 2, 1, 3]
    """
    taken: list[int] = []
    wished = {COLOURS[method] for method in methods if method in COLOURS}
    for method in methods:
        free = (k for k in range(len(methods) + len(COLOURS)) if k not in {*taken, *wished})
        wish = COLOURS.get(method)
        taken.append(wish if wish is not None and wish not in taken else next(free))
    return taken


def _settings(run: Run) -> str:
    """The same for runs that may be averaged."""
    if run.recipe:
        kept = essence(run.recipe, seed=False)
    else:
        wanted = ("recipe", "method", "network", "data", "scale", "steps", "provenance")
        kept = {k: run.record.get(k) for k in wanted}
        kept["rounds"] = len(run.record.get("rounds", []))
    return json.dumps(kept, sort_keys=True, default=str)


def _labels(members: Sequence[tuple[Run, ...]]) -> Iterator[str]:
    """The method's name; where one method came in several forms, with what tells them apart."""
    for group in members:
        run = group[0]
        rivals = [other[0] for other in members if other[0].method == run.method]
        parts = [essence(other.recipe, seed=False) for other in rivals]
        own = essence(run.recipe, seed=False)
        differing = [key for key in own if len({repr(part.get(key)) for part in parts}) > 1 and key != "name"]
        marks = [f"{SHORT.get(k, k)} = {own[k]}" for k in differing[:3]]
        if len(rivals) > 1 and not marks:
            marks = [str(run.record["recipe"])]
        yield ", ".join([title(run.method), *marks])


def title(method: str) -> str:
    """
    >>> title("meada+mixup"), title("mine")
    ('ME-ADA + Mixup', 'mine')
    """
    return " + ".join(TITLES.get(name, name) for name in method.split("+"))


def _rank(method: str) -> tuple[int, str]:
    return (ORDER.index(method) if method in ORDER else len(ORDER) - 3, method)


def _rounds(run: Run) -> int:
    return int(run.recipe.get("plan", {}).get("rounds", 0))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
