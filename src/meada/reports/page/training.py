"""Training curves: loss and candidates' accuracies over the steps, and what each round did."""

from collections.abc import Mapping, Sequence
from typing import Any

from meada.reports.page.blocks import Block, Cell, Chart, Number, Section, Series, Table, Text
from meada.reports.page.groups import Experiment, Group
from meada.reports.runs import Run

SCORES = {
    "source_val": "Held-out source images",
    "crafted": "Source images under crafted shifts",
    "oracle": "The targets themselves (oracle)",
}


def training(experiment: Experiment) -> Section | None:
    groups = [g for g in experiment.groups if any(run.log for run in g.runs)]
    if not groups:
        return None
    marks = _marks(groups)
    blocks: list[Block] = [
        Text("The network every N steps. Vertical lines mark maximisation rounds; bars and bands span the seeds."),
        _chart("Loss", groups, ("loss",), "loss", marks, None),
    ]  # fmt: skip
    for rule, title in SCORES.items():
        if any(rule in line.get("scores", {}) for g in groups for r in g.runs for line in r.log):
            name = f"{title}: accuracy of the candidates"
            chart = _chart(name, groups, ("scores", rule), "accuracy (%)", marks, (0, 100))
            blocks.append(chart)
    rows = tuple(row for g in experiment.groups for run in g.runs for row in _rounds(g, run))
    if rows:
        columns = (
            "method", "seed", "round", "step", "pool", "CE before", "CE after", "entropy before",
            "entropy after", "cost", "largest change (of 255)", "seconds",
        )  # fmt: skip
        digits = {name: 3 for name in columns[5:10]}
        blocks.append(Table("Maximisation rounds", columns, rows, digits))
        told = dict.fromkeys(
            f"{g.label}, seed {run.seed}: {text}."
            for g in experiment.groups
            for run in g.runs
            for line in run.record.get("rounds", [])
            for text in line.get("warnings", [])
        )
        blocks += [Text(text, "warning") for text in told]
    return Section("Training", tuple(blocks))


def _chart(
    title: str, groups: Sequence[Group], keys: tuple[str, ...], y_label: str,
    marks: tuple[tuple[Number, str], ...], y_range: tuple[Number, Number] | None,
) -> Chart:  # fmt: skip
    series = tuple(line for g in groups if (line := _curve(g, keys)) is not None)
    return Chart("lines", title, series, "step", y_label, marks=marks, y_range=y_range, small=True)


def _curve(group: Group, keys: tuple[str, ...]) -> Series | None:
    """Mean over the seeds at each step, from the lowest to the highest."""
    at: dict[int, list[float]] = {}
    for run in group.runs:
        for line in run.log:
            value: Any = line
            for key in keys:
                value = value.get(key) if isinstance(value, Mapping) else None
            if value is not None:
                at.setdefault(int(line["step"]), []).append(float(value))
    if not at:
        return None
    steps = sorted(at)
    several = len(group.runs) > 1
    return Series(
        group.label, tuple(sum(at[s]) / len(at[s]) for s in steps), tuple(steps),
        low=tuple(min(at[s]) for s in steps) if several else (),
        high=tuple(max(at[s]) for s in steps) if several else (),
        colour=group.colour,
    )  # fmt: skip


def _marks(groups: Sequence[Group]) -> tuple[tuple[Number, str], ...]:
    """Where rounds ended: of the run with most of them."""
    lines = [[x for x in run.log if "round" in x and "ce" in x] for g in groups for run in g.runs]
    most = max(lines, key=len)
    return tuple((int(line["step"]), f"round {line['round']}") for line in most)


def _rounds(group: Group, run: Run) -> list[tuple[Cell, ...]]:
    steps = {line["round"]: line["step"] for line in run.log if "round" in line}
    return [
        (
            group.label, run.seed, line["round"], steps.get(line["round"]), line["pool"],
            *line["ce"], *line["entropy"], float(line["cost"]),
            255 * float(line.get("linf_max", line["linf"])), float(line["seconds"]),
        )
        for line in run.record.get("rounds", [])
        if "ce" in line
    ]  # fmt: skip
