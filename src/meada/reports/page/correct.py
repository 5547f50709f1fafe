"""Intervals and differences of groups of runs: over seeds where there are several, else over images."""

from collections.abc import Sequence
from typing import Any

from meada.evaluation.statistics import Difference, Interval, image_interval, over_seeds, paired_bootstrap, t_interval
from meada.reports.page.groups import Group
from meada.reports.runs import Run


def interval(group: Group, rule: str, domain: str) -> Interval | None:
    """Of a group's mean accuracy; of one run without predictions, unknown."""
    runs = group.scored(rule)
    if len(runs) > 1:
        return t_interval(group.values(rule, domain))
    correct = _correct(runs[0], rule, domain) if runs else None
    return None if correct is None else image_interval(correct)


def difference(group: Group, base: Group, rule: str, domain: str) -> Difference:
    """Of two methods where both have two runs or more, else of two models: one run of each."""
    ours, theirs = (dict(zip(_seeds(g, rule), g.values(rule, domain), strict=True)) for g in (group, base))
    gap = over_seeds(ours, theirs)
    if gap.about == "methods":
        return gap
    seed = min(ours.keys() & theirs.keys(), default=None)
    a, b = (_run(g, rule, seed) for g in (group, base))
    value = ours[a.seed] - theirs[b.seed]
    pair = [_correct(run, rule, domain) for run in (a, b)]
    if pair[0] is None or pair[1] is None or not _same_pictures((a, b), rule):
        return Difference(value)
    return paired_bootstrap(*pair)


def _seeds(group: Group, rule: str) -> list[int]:
    return [run.seed for run in group.scored(rule)]


def _run(group: Group, rule: str, seed: int | None) -> Run:
    return next(run for run in group.scored(rule) if seed is None or run.seed == seed)


def _same_pictures(runs: Sequence[Run], rule: str) -> bool:
    labels = [{name: parts["label"].tolist() for name, parts in run.predictions(rule).items()} for run in runs]
    return labels[0] == labels[1]


def _correct(run: Run, rule: str, domain: str) -> Any:
    """Right or wrong by row and picture of one domain; for ``mean``, of all: corruptions of the same pictures are

    rows of one set, other domains are sets of their own. None without predictions.
    """
    names = run.results(rule) if domain == "mean" else (domain,)
    told = run.predictions(rule)
    if any(name not in told for name in names):
        return None
    sets = {name: _rows(run, rule, name) for name in names}
    if domain != "mean":
        return sets[domain]
    import numpy as np

    corrupted = all("by_severity" in run.results(rule)[name] for name in names)
    if corrupted and len({rows.shape for rows in sets.values()}) == 1:
        return np.concatenate(list(sets.values()))
    return sets


def _rows(run: Run, rule: str, domain: str) -> Any:
    """A row per severity of the same pictures."""
    parts = run.predictions(rule)[domain]
    severities = len(run.results(rule)[domain].get("by_severity", {}).get("accuracy", [0]))
    return (parts["guess"] == parts["label"]).numpy().reshape(severities, -1)
