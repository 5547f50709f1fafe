"""What was run, in plain words, and what every number depends on besides its recipe."""

from collections.abc import Iterator, Sequence
from typing import Any

from meada.reports.page.blocks import Block, Cell, Section, Table, Text
from meada.reports.page.groups import Experiment, Group, described, title
from meada.reports.runs import Run


def what_was_run(experiments: Sequence[Experiment], left_out: Sequence[str]) -> Section:
    blocks: list[Block] = [Text(_sentence(experiment)) for experiment in experiments]
    notes = dict.fromkeys(
        f"{run.record['recipe']}: {run.record['note']}."
        for experiment in experiments
        for run in experiment.runs()
        if run.record.get("note")
    )
    blocks += [Text(text) for text in notes]
    blocks += [Text(text, "missing") for text in left_out]
    unfinished = [r.name for e in experiments for r in e.runs() if not r.finished]
    if unfinished:
        told = ", ".join(unfinished)
        blocks.append(Text(f"Not finished, so without results: {told}.", "warning"))
    rows = tuple(_row(e, g, r) for e in experiments for g in e.groups for r in g.runs)
    columns = ("folder", "recipe", "method", "network", "data", "seed", "K", "steps", "finished")
    return Section("What was run", (*blocks, Table("Runs", columns, rows)))


def _sentence(experiment: Experiment) -> str:
    """What a visitor needs to know before the numbers."""
    runs = list(experiment.runs())
    first = runs[0].recipe.get("data", {})
    learnt = f"{first['train']:,} images" if isinstance(first.get("train"), int) else "images"
    methods = "; ".join(
        _method(name, [g for g in experiment.groups if g.method == name])
        for name in dict.fromkeys(group.method for group in experiment.groups)
    )
    tested = ", ".join(experiment.domains) or "none so far"
    kind = "corruptions of them" if experiment.corrupted else "domains not seen in training"
    return (
        f"{len(runs)} {'run' if len(runs) == 1 else 'runs'} of the network "
        f"{experiment.network or 'unknown'} were trained on {learnt} of {experiment.data or 'unknown'} "
        f"and tested on {kind}: {tested}. Methods: {methods}."
    )


def _method(method: str, groups: Sequence[Group]) -> str:
    words = [found.about.rstrip(".") for name in method.split("+") if (found := described(name)) and found.about]
    about = f": {'; '.join(words)}" if words else ""
    forms = []
    for group in groups:
        seeds = ", ".join(str(run.seed) for run in group.runs)
        mark = group.label.removeprefix(title(method)).removeprefix(", ")
        forms.append(f"{mark}{': ' if mark else ''}seed{'s' * (len(group.runs) > 1)} {seeds}")
    return f"{title(method)}{about} ({'; '.join(forms)})"


def _row(experiment: Experiment, group: Group, run: Run) -> tuple[Cell, ...]:
    record = run.record
    return (
        run.name, str(record["recipe"]), group.label, experiment.network, experiment.data,
        run.seed, group.rounds, int(record.get("steps", 0)), "yes" if run.finished else "no",
    )  # fmt: skip


def provenance(experiments: Sequence[Experiment], command: str) -> Section:
    """Versions, machines and files, each said once."""
    runs = [run for experiment in experiments for run in experiment.runs()]
    blocks: list[Block] = [Text(text) for text in dict.fromkeys(_lines(runs))]
    files = dict.fromkeys(
        (str(name), str(what)) for run in runs for name, what in run.record.get("provenance", {}).items()
    )
    if files:
        blocks.append(Table("Where the data came from", ("domain", "what was read"), tuple(files)))
    if command:
        blocks.append(Text(f"This page: {command}"))
    return Section("How these numbers were made", tuple(blocks))


def _lines(runs: Sequence[Run]) -> Iterator[str]:
    for run in runs:
        where: dict[str, Any] = run.record.get("environment", {})
        if where:
            yield (
                f"meada {where.get('meada', '?')}, torch {where.get('torch', '?')}, Python "
                f"{where.get('python', '?')} on {where.get('system', '?')}, "
                f"{where.get('processor', '?')}, {where.get('threads', '?')} threads, device "
                f"{where.get('device', 'cpu')}, precision {where.get('precision', 'fp32')}."
            )
        weights = run.record.get("weights") or {}
        if weights.get("file"):
            yield f"Weights from {weights['file']} (sha256 {weights.get('sha256', '?')})."
