"""Sections on corruption by severity, calibration, and accuracy under a small attack."""

import numpy as np
import torch
from torch import Tensor

from meada.reports.page.blocks import Block, Cell, Chart, Section, Series, Table, Text
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
    blocks += charts or [Text(
        "No reliability diagrams: these runs have no predictions.safetensors.", "missing"
    )]  # fmt: skip
    return Section("Calibration", tuple(blocks))


def _means(group: Group, rule: str, domain: str) -> tuple[Cell, ...]:
    names = group.domains if domain == "mean" else (domain,)
    known = [all(score in run.results(rule)[n] for run in group.scored(rule) for n in names) for score in SCORES]
    return tuple(
        _mean(group.values(rule, domain, s)) if there else None for s, there in zip(SCORES, known, strict=True)
    )


def _diagrams(experiment: Experiment, groups: list[Group], rule: str) -> list[Block]:
    together = len(experiment.domains) > MAX_DIAGRAMS
    sets = [experiment.domains] if together else [(name,) for name in experiment.domains]
    charts: list[Block] = []
    for names in sets:
        series = [line for g in groups if (line := reliability(g, names, rule)) is not None]
        if series:
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
    return reliability_curve(
        group.label, confidence, torch.cat([p["guess"] == p["label"] for p in parts]), group.colour
    )


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
    if not experiment.corrupted:
        return None
    maps = {g.label: _map(experiment, g, rule) for g in experiment.groups if g.scored(rule)}
    if not maps:
        return None
    levels = next(iter(maps.values())).shape[2]
    blocks: list[Block] = [
        Text(f"Every test image under {len(experiment.domains)} corruptions, each at {levels} severities from the "
             f"mildest to the worst. {_clean(experiment, rule)}"),
        _curves(experiment, maps, levels),
    ]  # fmt: skip
    severities = tuple(str(k + 1) for k in range(levels))
    means = [values.mean(0) for values in maps.values()]
    ends = (min(float(m.min()) for m in means), max(float(m.max()) for m in means))
    for label, values in maps.items():
        rows = tuple(
            Series(name, tuple(map(float, line))) for name, line in zip(experiment.domains, values.mean(0), strict=True)
        )
        title = f"{label}: accuracy (%) by corruption and severity"
        blocks.append(Chart(
            "heat", title, rows, "severity", "corruption", severities, y_range=ends, small=True
        ))  # fmt: skip
    return Section("Corruptions", (*blocks, _families(experiment, maps)))


def _map(experiment: Experiment, group: Group, rule: str) -> np.ndarray:
    """Runs x corruptions x severities."""
    return np.array([
        [run.results(rule)[d]["by_severity"]["accuracy"] for d in experiment.domains]
        for run in group.scored(rule)
    ])  # fmt: skip


def _curves(experiment: Experiment, maps: dict[str, np.ndarray], levels: int) -> Chart:
    colours = {g.label: g.colour for g in experiment.groups}
    series = []
    for label, values in maps.items():
        each = values.mean(1)  # a line a seed
        series.append(Series(
            label, tuple(map(float, each.mean(0))), tuple(range(1, levels + 1)),
            low=tuple(map(float, each.min(0))), high=tuple(map(float, each.max(0))),
            colour=colours[label],
        ))  # fmt: skip
    title = "Accuracy by severity, mean over the corruptions; bars span the seeds"
    return Chart("lines", title, tuple(series), "severity", "accuracy (%)")


def _clean(experiment: Experiment, rule: str) -> str:
    means = []
    for group in experiment.groups:
        values = [
            float(run.record["clean"][rule]["accuracy"])
            for run in group.scored(rule)
            if rule in run.record.get("clean", {})
        ]
        if values:
            means.append(f"{group.label} {sum(values) / len(values):.1f} %")
    return f"Without corruption: {', '.join(means)}." if means else ""


def _families(experiment: Experiment, maps: dict[str, np.ndarray]) -> Table:
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (label, domain, *values.mean(0)[i].tolist(), float(values.mean(0)[i].mean()))
        for label, values in maps.items()
        for i, domain in enumerate(experiment.domains)
    )
    levels = next(iter(maps.values())).shape[2]
    columns = ("method", "corruption", *(f"severity {k + 1}" for k in range(levels)), "mean")
    return Table("Accuracy (%) by corruption and severity", columns, rows)
