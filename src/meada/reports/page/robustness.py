"""Sections on corruption by severity, calibration, and accuracy under a small attack."""

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
    rows = tuple((g.label, domain, *_means(g, rule, domain)) for g in groups for domain in experiment.columns)
    columns = ("method", "domain", "ECE", "NLL (nats)", "Brier")
    digits = {name: 3 for name in columns}
    blocks: list[Block] = [
        Text("A network that is 80 % sure should be right 8 times in 10. ECE is the mean gap "
             "between the two; NLL and Brier score also punish being wrong. Lower is better."),
        Table("Calibration, mean over seeds", columns, rows, digits),
    ]  # fmt: skip
    charts = _diagrams(experiment, groups, rule)
    blocks += charts or [Text("No reliability diagrams: these runs have no predictions.safetensors.", "missing")]
    return Section("Calibration", tuple(blocks))


def _means(group: Group, rule: str, domain: str) -> tuple[Cell, ...]:
    names = group.domains if domain == "mean" else (domain,)
    known = [all(score in run.results(rule)[n] for run in group.scored(rule) for n in names) for score in SCORES]
    scores = zip(SCORES, known, strict=True)
    return tuple(_mean(group.values(rule, domain, score)) if there else None for score, there in scores)


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
    """Share of right answers in each bin of confidence (a, b], over the seeds and ``domains``."""
    parts = [run.predictions(rule)[name] for run in group.runs for name in domains if name in run.predictions(rule)]
    if not parts:
        return None
    confidence = torch.cat([p["confidence"].double() for p in parts])
    right = torch.cat([p["guess"] == p["label"] for p in parts])
    return reliability_curve(group.label, confidence, right, group.colour)


def reliability_curve(name: str, confidence: Tensor, right: Tensor, colour: int) -> Series:
    """Share of right answers (%) by mean confidence (%), in ten bins of confidence.

    >>> curve = reliability_curve("m", torch.tensor([0.5, 0.99]), torch.tensor([False, True]), colour=0)
    >>> curve.y, [round(x) for x in curve.x]
    ((0.0, 100.0), [50, 99])
    """
    which = (confidence * BINS).ceil().clamp(1, BINS)
    mean = lambda values: tuple(100 * float(values[which == b].double().mean()) for b in which.unique())
    return Series(name, mean(right), mean(confidence), colour=colour)


def attacked(experiment: Experiment) -> Section | None:
    """From ``attack.json``, which ``meada evaluate --pgd`` writes."""
    attacked_groups = [(g, [a for run in g.runs if (a := run.attack())]) for g in experiment.groups]
    attacked_groups = [(group, attacks) for group, attacks in attacked_groups if attacks]
    if not attacked_groups:
        return None
    one = attacked_groups[0][1][0]
    names = tuple(dict.fromkeys(n for _, attacks in attacked_groups for a in attacks for n in a["domains"]))
    series, rows = [], []
    for group, attacks in attacked_groups:
        for which in ("clean", "attacked"):
            means = [_mean([a["domains"][n][which] for a in attacks if n in a["domains"]]) for n in names]
            series.append(Series(f"{group.label}, {which}", tuple(means), colour=group.colour,
                                 dashed=which == "attacked"))  # fmt: skip
        for n in names:
            each = [a["domains"][n] for a in attacks if n in a["domains"]]
            scores = (_mean([e[w] for e in each]) for w in ("clean", "attacked"))
            rows.append((group.label, n, *scores, sum(e["n"] for e in each), len(each)))
    intro = (
        f"{one['attack']} changes every pixel by at most {one['radius']:g} levels of 255 in {one['steps']} steps, with "
        f"full access to the network ('{one['rule']}' checkpoint). None of these methods is a defence against it."
    )
    columns = ("method", "domain", "clean", "attacked", "images", "seeds")
    return Section("Under a small attack", (
        Text(intro),
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
    every = [_by_severity(experiment, group, rule) for group in groups]
    severities = range(1, every[0].shape[2] + 1)
    curves = tuple(
        band(g.label, values.mean(1).T.tolist(), severities, g.colour) for g, values in zip(groups, every, strict=True)
    )
    blocks: list[Block] = [
        Text(f"Every test image under {len(experiment.domains)} corruptions, each at {len(severities)} severities from "
             f"the mildest to the worst. {_clean(groups, rule)}"),
        Chart("lines", "Accuracy by severity, mean over the corruptions; bars span the seeds", curves, "severity",
              "accuracy (%)"),
    ]  # fmt: skip
    means = [values.mean(0) for values in every]
    ends = (min(float(m.min()) for m in means), max(float(m.max()) for m in means))
    rows: list[tuple[Cell, ...]] = []
    for group, values in zip(groups, means, strict=True):
        lines = dict(zip(experiment.domains, values.tolist(), strict=True))
        series = tuple(Series(name, tuple(line)) for name, line in lines.items())
        title = f"{group.label}: accuracy (%) by corruption and severity"
        ticks = tuple(map(str, severities))
        blocks.append(Chart("heat", title, series, "severity", "corruption", ticks, y_range=ends, small=True))
        rows += [(group.label, name, *line, float(np.mean(line))) for name, line in lines.items()]
    columns = ("method", "corruption", *(f"severity {k}" for k in severities), "mean")
    blocks.append(Table("Accuracy (%) by corruption and severity", columns, tuple(rows)))
    return Section("Corruptions", tuple(blocks))


def _by_severity(experiment: Experiment, group: Group, rule: str) -> np.ndarray:
    """Runs x corruptions x severities."""
    return np.array(
        [[run.results(rule)[d]["by_severity"]["accuracy"] for d in experiment.domains] for run in group.scored(rule)]
    )


def _clean(groups: list[Group], rule: str) -> str:
    means = []
    for group in groups:
        clean = [run.record.get("clean", {}).get(rule) for run in group.scored(rule)]
        if values := [float(scores["accuracy"]) for scores in clean if scores is not None]:
            means.append(f"{group.label} {sum(values) / len(values):.1f} %")
    return f"Without corruption: {', '.join(means)}." if means else ""
