"""Sections on corruption by severity, calibration, and accuracy under a small attack."""

from itertools import product

import numpy as np
import torch
from torch import Tensor

from meada.reports.page.blocks import Block, Cell, Chart, Section, Series, Table, Text, band
from meada.reports.page.groups import Experiment, Group

BINS = 10
MAX_DIAGRAMS = 6  # diagrams: with more domains than this, one for all of them together
SCORES = ("ece", "nll", "brier")


def calibration(experiment: Experiment, rule: str) -> Section | None:
    groups = [group for group in experiment.groups if group.scored(rule)]
    if not groups:
        return None
    rows: list[tuple[Cell, ...]] = []
    of_rules = [(g, r) for g in groups for r in dict.fromkeys((rule, "calibrated")) if g.scored(r)]
    for (group, r), domain in product(of_rules, experiment.columns):
        names = group.domains if domain == "mean" else (domain,)
        tested = [run.results(r)[name] for run in group.scored(r) for name in names]
        known = [all(one.get(score) is not None for one in tested) for score in SCORES]
        means = (_mean(group.values(r, domain, s)) if k else None for s, k in zip(SCORES, known, strict=True))
        rows.append((group.label if r == rule else f"{group.label}, {r}", domain, *means))
    columns = ("method", "domain", "ECE", "NLL (nats)", "Brier")
    blocks: list[Block] = [
        Text("A network that is 80 % sure should be right 8 times in 10. ECE is the mean gap "
             "between the two; NLL and Brier score also punish being wrong. Lower is better."),
        Table("Calibration, mean over seeds", columns, tuple(rows), {name: 3 for name in columns}),
    ]  # fmt: skip
    blocks += _diagrams(experiment, groups, rule)
    if missing := [f"{g.label}, seeds {listed}" for g in groups if (listed := _seeds(g, rule, without=True))]:
        blocks.append(Text(f"Without reliability diagrams, for lack of predictions: {'; '.join(missing)}.", "missing"))
    return Section("Calibration", tuple(blocks))


def _seeds(group: Group, rule: str, *, without: bool) -> str:
    """The seeds of the runs with, or without, predictions."""
    return ", ".join(str(run.seed) for run in group.scored(rule) if bool(run.predictions(rule)) is not without)


def _diagrams(experiment: Experiment, groups: list[Group], rule: str) -> list[Block]:
    together = len(experiment.domains) > MAX_DIAGRAMS
    sets = [experiment.domains] if together else [(name,) for name in experiment.domains]
    charts: list[Block] = []
    for names in sets:
        if series := [line for g in groups if (line := reliability(g, names, rule)) is not None]:
            where = "all domains together" if together else names[0]
            charts.append(Chart(
                "lines", f"Reliability, {where}", tuple(series), "confidence (%)",
                "accuracy (%)", y_range=(0, 100), diagonal=True, small=not together,
            ))  # fmt: skip
    return charts


def reliability(group: Group, domains: tuple[str, ...], rule: str) -> Series | None:
    """Accuracy in each bin of confidence (a, b], over the seeds and ``domains``."""
    parts = [run.predictions(rule)[name] for run in group.runs for name in domains if name in run.predictions(rule)]
    if not parts:
        return None
    confidence = torch.cat([p["confidence"].double() for p in parts])
    right = torch.cat([p["guess"] == p["label"] for p in parts])
    label = f"{group.label} (seeds {_seeds(group, rule, without=False)})"
    return reliability_curve(label, confidence, right, group.colour)


def reliability_curve(name: str, confidence: Tensor, right: Tensor, colour: int) -> Series:
    """Accuracy (%) by mean confidence (%), in ten bins of confidence.

    >>> curve = reliability_curve("m", torch.tensor([0.5, 0.99]), torch.tensor([False, True]), colour=0)
    >>> curve.y, [round(x) for x in curve.x]
    ((0.0, 100.0), [50, 99])
    """
    which = (confidence * BINS).ceil().clamp(1, BINS)
    mean = lambda values: tuple(100 * float(values[which == b].double().mean()) for b in which.unique())
    return Series(name, mean(right), mean(confidence), colour=colour)


def attacked(experiment: Experiment) -> Section | None:
    """Section on accuracy under attack, from ``attack.json`` of ``meada evaluate --pgd``."""
    measured = [(group, [found for run in group.runs if (found := run.attack())]) for group in experiment.groups]
    every = [attack for _, attacks in measured for attack in attacks]
    if not every:
        return None
    one, names = every[0], tuple(dict.fromkeys(name for attack in every for name in attack["domains"]))
    series: list[Series] = []
    rows: list[tuple[Cell, ...]] = []
    for group, attacks in measured:
        found = {n: [a["domains"][n] for a in attacks if n in a["domains"]] for n in names}
        for which in ("clean", "attacked") if attacks else ():
            means = tuple(_mean([scores[which] for scores in each]) for each in found.values())
            name = f"{group.label}, {which}"
            series.append(Series(name, means, colour=group.colour, dashed=which == "attacked"))
        for name, each in found.items() if attacks else ():
            means = tuple(_mean([scores[which] for scores in each]) for which in ("clean", "attacked"))
            rows.append((group.label, name, *means, sum(scores["n"] for scores in each), len(each)))
    columns = ("method", "domain", "clean", "attacked", "images", "seeds")
    return Section("Accuracy under a small attack", (
        Text(f"{one['attack']} changes every pixel by at most {one['radius']:g} levels of 255 in {one['steps']} steps, "
             f"with full access to the network ('{one['rule']}' checkpoint). None of these methods is a defence "
             "against it."),
        Chart("bars", "Accuracy without and under attack", tuple(series), "domain",
              "accuracy (%)", names, y_range=(0, 100)),
        Table("Accuracy (%) without and under attack", columns, tuple(rows)),
    ))  # fmt: skip


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def corruptions(experiment: Experiment, rule: str) -> Section | None:
    groups = [group for group in experiment.groups if group.scored(rule)]
    if not experiment.corrupted or not groups:
        return None
    tables = [[run.results(rule) for run in group.scored(rule)] for group in groups]
    severity = lambda one: [one[domain]["by_severity"]["accuracy"] for domain in experiment.domains]
    every = [np.array([severity(one) for one in of]) for of in tables]  # of each group, runs x corruptions x severities
    severities = range(1, every[0].shape[2] + 1)
    ticks, means = tuple(map(str, severities)), [values.mean(0) for values in every]
    extremes = (min(float(m.min()) for m in means), max(float(m.max()) for m in means))
    curves, maps = [], []
    rows: list[tuple[Cell, ...]] = []
    for group, values, mean in zip(groups, every, means, strict=True):
        curves.append(band(group.label, values.mean(1).T.tolist(), severities, group.colour))
        lines = dict(zip(experiment.domains, mean.tolist(), strict=True))
        series = tuple(Series(name, tuple(line)) for name, line in lines.items())
        title = f"{group.label}: accuracy (%) by corruption and severity"
        maps.append(Chart("heat", title, series, "severity", "corruption", ticks, y_range=extremes, small=True))
        rows += [(group.label, name, *line, float(np.mean(line))) for name, line in lines.items()]
    columns = ("method", "corruption", *(f"severity {k}" for k in severities), "mean")
    return Section("Corruptions", (
        Text(f"Every test image under {len(experiment.domains)} corruptions, each at {len(severities)} severities from "
             f"the mildest to the worst. {_clean(groups, rule)}"),
        Chart("lines", "Accuracy by severity, mean over the corruptions; bars span the seeds", tuple(curves),
              "severity", "accuracy (%)"),
        *maps,
        Table("Accuracy (%) by corruption and severity", columns, tuple(rows)),
    ))  # fmt: skip


def _clean(groups: list[Group], rule: str) -> str:
    means = []
    for group in groups:
        clean = [run.record.get("clean", {}).get(rule) for run in group.scored(rule)]
        if (mean := _mean([float(scores["accuracy"]) for scores in clean if scores is not None])) is not None:
            means.append(f"{group.label} {mean:.1f} %")
    return f"Without corruption: {', '.join(means)}." if means else ""
