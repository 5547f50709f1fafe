"""Under corruption: accuracy by severity, and a map of corruption x severity for each method."""

import numpy as np

from meada.reports.page.blocks import Block, Cell, Chart, Section, Series, Table, Text
from meada.reports.page.groups import Experiment, Group


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
    told = []
    for group in experiment.groups:
        values = [
            float(run.record["clean"][rule]["accuracy"])
            for run in group.scored(rule)
            if rule in run.record.get("clean", {})
        ]
        if values:
            told.append(f"{group.label} {sum(values) / len(values):.1f} %")
    return f"Without corruption: {', '.join(told)}." if told else ""


def _families(experiment: Experiment, maps: dict[str, np.ndarray]) -> Table:
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (label, domain, *values.mean(0)[i].tolist(), float(values.mean(0)[i].mean()))
        for label, values in maps.items()
        for i, domain in enumerate(experiment.domains)
    )
    levels = next(iter(maps.values())).shape[2]
    columns = ("method", "corruption", *(f"severity {k + 1}" for k in range(levels)), "mean")
    return Table("Accuracy (%) by corruption and severity", columns, rows)
