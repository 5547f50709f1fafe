"""Group runs: average those that differ only in their seed, compare those with the same test domains."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from meada.evaluation import statistics
from meada.evaluation.statistics import Difference, Interval, Summary, summarise
from meada.methods import METHODS, Method
from meada.reports.runs import Run

BASELINES = ("erm", "agg")  # what the others are compared with, where one of them is there
ORDER = ("erm", "agg", "ada", "meada", "meada-bnn", "trivialaugment", "randconv", "prime", "augmax", "tilted")
COLOURS = {"erm": 0, "agg": 0, "ada": 1, "meada": 2, "meada-bnn": 3}
SHORT = {
    "plan.rounds": "K", "plan.total_steps": "steps", "network.name": "network", "method.hardness": "hardness",
    "method.consistency": "consistency",
}  # fmt: skip


@dataclass(frozen=True)
class Group:
    """Runs of one recipe, one per seed; ``mean`` is over ``domains``."""

    label: str
    runs: tuple[Run, ...]
    domains: tuple[str, ...]
    colour: int = 0

    @property
    def method(self) -> str:
        return self.runs[0].method

    @property
    def rounds(self) -> int:
        """The paper's K; 0 for methods that add no samples, whatever their plan."""
        first = self.runs[0]
        if first.finished:
            return sum("ce" in line for line in first.record.get("rounds", []))
        return int(first.recipe.get("plan", {}).get("rounds", 0))

    @property
    def crafted(self) -> list[list[str]]:
        """The different lists of shifts by which the rule ``crafted`` chose; versions before 0.2.0 named none."""
        chose = (run.record.get("selected", {}).get("crafted", {}) for run in self.scored("crafted"))
        return [*map(list, dict.fromkeys(tuple(c.get("families") or c.get("corruptions") or ()) for c in chose))]

    def scored(self, rule: str) -> list[Run]:
        return [run for run in self.runs if run.results(rule)]

    def by_seed(self, rule: str, domain: str, score: str = "accuracy") -> dict[int, float]:
        return {run.seed: run.score(rule, domain, self.domains, score) for run in self.scored(rule)}

    def values(self, rule: str, domain: str, score: str = "accuracy") -> list[float]:
        return [*self.by_seed(rule, domain, score).values()]

    def mean(self, rule: str, domain: str) -> Summary:
        return summarise(self.values(rule, domain))

    def summary(self, rule: str, domain: str) -> Summary | None:
        """Summary over the seeds; None if no run has scores."""
        return self.mean(rule, domain) if self.scored(rule) else None

    def interval(self, rule: str, domain: str) -> Interval | None:
        """95 % interval of the mean accuracy: over seeds, or over images for a single run; None if unknown."""
        runs = self.scored(rule)
        if len(runs) > 1:
            return statistics.t_interval(self.values(rule, domain))
        correct = _correct(runs[0], rule, domain, self.domains) if runs else None
        return None if correct is None else statistics.image_interval(correct)

    def minus(self, base: "Group", rule: str, domain: str) -> Difference:
        """This group minus another: of two methods if both have several runs, else of two models, one run of each."""
        ours, theirs = (g.by_seed(rule, domain) for g in (self, base))
        gap = statistics.over_seeds(ours, theirs)
        if gap.about == "methods":
            return gap
        seed = min(ours.keys() & theirs.keys(), default=None)
        pair = [next(r for r in g.scored(rule) if seed is None or r.seed == seed) for g in (self, base)]
        correct = [_correct(run, rule, domain, self.domains) for run in pair]
        labels = [{k: v["label"].tolist() for k, v in run.predictions(rule).items()} for run in pair]
        if any(one is None for one in correct) or labels[0] != labels[1]:
            return Difference(ours[pair[0].seed] - theirs[pair[1].seed])
        return statistics.paired_bootstrap(*correct)


def _correct(run: Run, rule: str, domain: str, domains: Sequence[str]) -> Any:
    """Correctness by row and picture of one domain; for ``mean``, of all: corruptions of the same pictures are

    rows of one set, other domains are sets of their own. None without predictions.
    """
    sets: dict[str, Any] = {}
    results, predictions = run.results(rule), run.predictions(rule)
    for name in domains if domain == "mean" else (domain,):
        if name not in predictions:
            return None
        severities = len(results[name].get("by_severity", {}).get("accuracy", [0]))  # a row for each
        right = predictions[name]["guess"] == predictions[name]["label"]
        sets[name] = right.numpy().reshape(severities, -1)
    if domain != "mean":
        return sets[domain]
    corrupted = all("by_severity" in results[name] for name in sets)
    if corrupted and len({rows.shape for rows in sets.values()}) == 1:
        return np.concatenate(list(sets.values()))
    return sets


@dataclass(frozen=True)
class Experiment:
    """Groups that were tested on the same domains with the same network."""

    title: str
    data: str
    network: str
    domains: tuple[str, ...]
    groups: tuple[Group, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The domains and, if there are several, their mean."""
        return (*self.domains, *(("mean",) if len(self.domains) > 1 else ()))

    @property
    def baseline(self) -> Group:
        """The group of the plain method; of several variants, the one with most seeds."""
        plain = [group for name in BASELINES for group in self.groups if group.method == name]
        return max(plain or self.groups[:1], key=lambda group: len(group.runs))

    @property
    def corrupted(self) -> bool:
        """Whether the domains are corruptions, each with its severities."""
        return any("by_severity" in scores for run in self.runs() for scores in run.results("last").values())

    def runs(self) -> Iterator[Run]:
        for group in self.groups:
            yield from group.runs


def experiments(runs: Sequence[Run]) -> list[Experiment]:
    """By data, network, scale, domains and how corruptions were made; in each, the plain method first."""
    places: dict[tuple[tuple[str, ...], str], list[Run]] = {}
    for run in runs:
        places.setdefault((_place(run), corruptions_of(run)), []).append(run)
    named = lambda place, made: f", corruptions {made}" if sum(other == place for other, _ in places) > 1 else ""
    found = ((experiment(place, here), named(place, made)) for (place, made), here in places.items())
    return [replace(one, title=one.title + mark) for one, mark in found]


def corruptions_of(run: Run) -> str:
    """How the corruptions of a run's targets were made; versions 0.1.0 and 0.2.0 make the same pixels."""
    return re.sub(r"by meada 0\.[12]\.0\b", "by meada", str(run.record.get("provenance", {}).get("corruptions", "")))


def experiment(place: tuple[str, ...], runs: Sequence[Run]) -> Experiment:
    data, network, scale, *domains = place
    title = f"{data}, {network}" + ("" if scale == "1" else f", scale {scale}")
    if len(domains) == 1:
        title += f", tested on {domains[0]}"
    return Experiment(title, data, network, tuple(domains), groups(runs, tuple(domains)))


def once_per_seed(runs: Sequence[Run]) -> tuple[list[Run], list[str]]:
    """The first run of each recipe and seed, and a sentence on each other one."""
    first: dict[str, Run] = {}
    same = [first.setdefault(f"{_settings(run)} {run.seed}", run) for run in runs]
    repeats = [(run, one) for run, one in zip(runs, same, strict=True) if one is not run]
    return [*first.values()], [f"{run.name} repeats {one.name} and is left out." for run, one in repeats]


def _place(run: Run) -> tuple[str, ...]:
    record = run.record
    domains = record["results"].get("last") or run.recipe.get("data", {}).get("targets", ())
    about = (record.get("data", ""), record.get("network", ""), f"{record.get('scale', 1):g}")
    return (*map(str, about), *map(str, domains))


def groups(runs: Sequence[Run], domains: tuple[str, ...]) -> tuple[Group, ...]:
    alike: dict[str, dict[int, Run]] = {}
    for run in runs:
        alike.setdefault(_settings(run), {}).setdefault(run.seed, run)
    members = [tuple(by_seed[s] for s in sorted(by_seed)) for by_seed in alike.values()]
    members.sort(key=lambda group: (rank(group[0].method), int(group[0].recipe.get("plan", {}).get("rounds", 0))))
    chosen = colours([group[0].method for group in members])
    named = zip(_labels(members), members, chosen, strict=True)
    return tuple(Group(label, group, domains, colour) for label, group, colour in named)


def colours(methods: Sequence[str]) -> list[int]:
    """A colour number per method: as far as possible the same method has the same colour on every page.

    >>> colours(["erm", "meada", "meada", "mixup"])
    [0, 2, 1, 3]
    """
    taken: list[int] = []
    wished = {COLOURS[method] for method in methods if method in COLOURS}
    for method in methods:
        free = next(k for k in range(len(methods) + len(COLOURS)) if k not in {*taken, *wished})
        wish = COLOURS.get(method, free)
        taken.append(free if wish in taken else wish)
    return taken


def _settings(run: Run) -> str:
    """A key that is equal for runs that may be averaged."""
    if run.recipe:
        kept = run.experiment_settings
    else:
        wanted = ("recipe", "method", "network", "data", "scale", "steps", "provenance")
        kept = {k: run.record.get(k) for k in wanted}
        kept["rounds"] = len(run.record.get("rounds", []))
    return json.dumps(kept, sort_keys=True, default=str)


def _labels(members: Sequence[tuple[Run, ...]]) -> Iterator[str]:
    """The method's name; variants by their shipped recipes' names, and with the settings in which they differ."""
    for group in members:
        run, name = group[0], group[0].method
        rivals = [other[0] for other in members if other[0].method == name]
        variants = {variant(other.record) for other in rivals}
        if len(variants) > 1 and variants == {variant(other.record) for other in rivals if other.changed == {}}:
            name = variant(run.record)
            rivals = [other for other in rivals if variant(other.record) == name] if run.changed else [run]
        parts, own = [other.experiment_settings for other in rivals], run.experiment_settings
        differing = [key for key in own if len({repr(part.get(key)) for part in parts}) > 1 and key != "name"]
        trained = [key for key in differing if not key.startswith("evaluation.")] or differing
        marks = [f"{SHORT.get(k, k)} = {own[k]}" for k in trained[:3]]
        if len(rivals) > 1 and not marks:
            marks = [str(run.record["recipe"])]
        yield ", ".join([title(name), *marks])


def variant(record: Mapping[str, Any]) -> str:
    """The method; a variant of one (wideresnet-advtrain-small, erm-epochs) by its recipe's name."""
    name, method = record["recipe"].rpartition("/")[2], record["method"]
    variants = (name, name.partition("-")[2])  # with the network before it, or without
    return next((part for part in variants if part.startswith(f"{method}-")), method)


@cache
def described(method: str) -> Method | None:
    """The method with its title and description; None if it is not in the package."""
    return METHODS[method]() if method in METHODS else None


def title(method: str) -> str:
    """
    >>> title("meada+mixup"), title("tilted-random"), title("mine")
    ('ME-ADA + Mixup', 'Tilted, random', 'mine')
    """
    return " + ".join(map(_title, method.split("+")))


def _title(name: str) -> str:
    method, _, rest = name.partition("-")
    if found := described(name):
        return found.title or name
    return f"{known.title}, {rest}" if rest and (known := described(method)) and known.title else name


def rank(method: str) -> tuple[int, str]:
    """Sort key: the paper's order, contemporaries before ME-ADA, methods over views after it; variants by method.

    >>> [rank(name)[0] for name in ("erm-epochs", "mixup", "meada-bnn", "tilted-random")] == [0, 2, 4, len(ORDER) - 1]
    True
    """
    alike = [name for name in ORDER if f"{method}-".startswith(f"{name}-")]
    return (ORDER.index(max(alike, key=len, default="ada")), method)
