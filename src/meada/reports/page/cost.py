"""Sections on checkpoint selection, cost of the runs, and accuracy in equal time."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from meada.evaluation.selection import RULE_TEXTS, RULES
from meada.evaluation.statistics import Summary, summarise
from meada.reports.page.blocks import Block, Cell, Chart, Section, Series, Table, Text, band
from meada.reports.page.groups import BASELINES, Experiment, Group
from meada.reports.runs import Run

TIMES = (1, 2, 4)  # multiples of the plain method's training time
REFERENCE = "meada"  # its end is what time to accuracy is measured to
SOURCE = (
    "Source: accuracy on held-out images of the training domains at the last step. With the same version of torch, "
    "kind of processor and number of threads a command repeats its record to the bit; elsewhere within rounding, which "
    "training magnifies. The variables before some commands keep newer processors to the vector instructions of the "
    "record: with them LeNet's records repeat to the bit, EfficientNet-Lite0's do not."
)


def chosen(experiment: Experiment) -> Section | None:
    """Section on the rules, the step that each of them selected, and its accuracy."""
    rows: list[tuple[Cell, ...]] = []
    for group in experiment.groups:
        for rule in filter(group.scored, RULES):
            runs, summary = group.scored(rule), group.mean(rule, "mean")
            steps = [r.record.get("selected", {}).get(rule, {}).get("step") for r in runs]
            listed = ", ".join("?" if s is None else f"{s:,}" for s in steps)
            own = [float(r.record["source"][rule]["accuracy"]) for r in runs if "source" in r.record]
            mean = sum(own) / len(own) if own else None
            rows.append((group.label, rule, listed, summary.mean, summary.std, mean, len(runs)))
    if not rows:
        return None
    rules = rule_texts(row[1] for row in rows)
    columns = ("method", "rule", "steps chosen", "mean of targets", "std", "source", "seeds")
    return Section("How each checkpoint was chosen", (
        Text(f"The rules choose among the candidates; they differ in the data that they use. {rules}."),
        Table("Accuracy (%) of each rule's checkpoint", columns, tuple(rows)),
    ))  # fmt: skip


def rule_texts(shown: Iterable[Cell]) -> str:
    """What each of the rules ``shown`` means."""
    named = set(shown)
    return "; ".join(f"{rule}: {what}" for rule, what in RULE_TEXTS.items() if rule in named)


def spent(experiment: Experiment) -> Section:
    rows = tuple(_row(group, run) for group in experiment.groups for run in group.runs)
    columns = (
        "method", "seed", "gradient steps", "images trained on", "images made", "ascent passes",
        "minimise (s)", "maximise (s)", "evaluate (s)", "total (s)", "core-hours", "threads", "processor",
    )  # fmt: skip
    blocks = [
        Text("Images trained on: steps times batch size. Ascent passes: forward and backward passes over images in "
             "the maximisation phase. Core-hours: seconds times threads.")
    ]  # fmt: skip
    steps = {g.label: {int(r.record.get("steps", 0)) for r in g.runs} for g in experiment.groups}
    if len(set().union(*steps.values())) > 1:
        listed = (f"{label}: {' and '.join(f'{n:,}' for n in sorted(found))}" for label, found in steps.items())
        blocks.append(Text(f"The budgets are unequal: gradient steps differ ({'; '.join(listed)}).", "warning"))
    return Section("Cost", (*blocks, Table("Compute", columns, rows, {"core-hours": 3})))


def _row(group: Group, run: Run) -> tuple[Cell, ...]:
    record, plan = run.record, run.recipe.get("plan", {})
    steps, batch = int(record.get("steps", 0)), plan.get("batch_size")
    made, ascent = _images_added(run), run.recipe.get("method", {}).get("steps")
    seconds, where = record.get("seconds", {}), record.get("environment", {})
    times = [float(seconds[k]) if k in seconds else None for k in ("minimise", "maximise", "evaluate")]
    return (
        group.label, run.seed, steps, steps * int(batch) if batch else None, made,
        None if made is None or ascent is None else made * int(ascent), *times,
        float(sum(seconds.values())) if seconds else None, core_hours(run), where.get("threads"),
        str(where.get("processor", "unknown")),
    )  # fmt: skip


def core_hours(run: Run) -> float | None:
    """Seconds times threads, in hours; None if a record lacks them."""
    seconds, threads = run.record.get("seconds"), run.record.get("environment", {}).get("threads")
    return sum(seconds.values()) * int(threads) / 3600 if seconds and threads else None


def _images_added(run: Run) -> int | None:
    """Number of images that the rounds added to the pool; None if the initial size is unknown."""
    sizes = [int(line["pool"]) for line in run.record.get("rounds", []) if "ce" in line]
    if not sizes:
        return 0
    first = run.recipe.get("data", {}).get("train")
    return sizes[-1] - int(first) if isinstance(first, int) and first else None


def records(runs: Sequence[Run]) -> Section:
    """Table of the page's runs, with their costs and the commands that repeat them."""
    rows: list[tuple[Cell, ...]] = []
    for run in runs:
        took = ", ".join(f"{run.record['seconds'].get(k, 0.0) / 60:.0f}" for k in ("minimise", "maximise", "evaluate"))
        own = run.record.get("source", {}).get("last", {}).get("accuracy")
        about = (f"`{run.name}`", int(run.record["steps"]), own, took, core_hours(run), run.machine)
        rows.append((*about, f"`{run.command}`"))
    took = "minutes: minimise, maximise, evaluate"
    columns = ("record", "steps", "source (%)", took, "core-hours", "machine", "command")
    return Section("Records", (Table("", columns, tuple(rows), {"core-hours": 2}), Text(SOURCE)))


def candidates(run: Run) -> dict[int, float]:
    """Step -> mean accuracy on the targets' subsets, for each candidate in the log."""
    return {line["step"]: line["scores"]["oracle"] for line in run.log if "oracle" in line.get("scores", {})}


def seconds_at(run: Run, step: int) -> float:
    """Training time up to a step: its share of the minimisation plus the rounds before it.

    Evaluation is not counted: candidates are scored to be looked at, not to train.
    """
    total = max(int(run.record["steps"]), 1)
    at = run.round_steps
    ascents = [r.get("seconds", 0.0) for k, r in enumerate(run.record.get("rounds", []), 1) if at.get(k, total) < step]
    return float(run.record["seconds"].get("minimise", 0.0)) * step / total + sum(ascents)


def training_seconds(run: Run) -> float:
    return sum(float(run.record["seconds"].get(k, 0.0)) for k in ("minimise", "maximise"))


def reached(run: Run, seconds: float) -> tuple[int, float] | None:
    """Step and score of the last candidate within a time; None before the first."""
    inside = [(t, v) for t, v in candidates(run).items() if seconds_at(run, t) <= seconds]
    return max(inside) if inside else None


def equal_time(experiment: Experiment, name: str = "") -> Section | None:
    """Accuracy against training time, and at multiples of the plain method's time; finished runs with logs."""
    groups, machine, left_out = on_one_machine([
        g for g in experiment.groups if all(r.finished and candidates(r) and "seconds" in r.record for r in g.runs)
    ])  # fmt: skip
    plain = [g for g in groups if g.method in BASELINES]
    if not plain or len(groups) < 2:
        return None
    base, budget = plain[0].label, summarise([training_seconds(run) for run in plain[0].runs]).mean
    curves: list[Series] = []
    rows: list[tuple[Cell, ...]] = []
    for group in groups:
        scores = [candidates(run) for run in group.runs]
        common = sorted(set.intersection(*map(set, scores)))  # candidates that all seeds have
        values = [[of[step] for of in scores] for step in common]
        times = [sum(seconds_at(run, step) for run in group.runs) / len(scores) / 60 for step in common]
        curves.append(band(group.label, values, times, group.colour, several=len(scores) > 1))
        cells = [_reached([reached(run, k * budget) for run in group.runs]) for k in TIMES]
        end = _reached([max(of.items()) for of in scores])
        minutes = spread(summarise([training_seconds(run) / 60 for run in group.runs]), 1)
        rows.append((group.label, *cells, end, minutes, len(group.runs)))
    later = (f"{k} x {base}'s time" for k in TIMES[1:])
    columns = ("method", f"when {base} ends", *later, "at the end", "minutes", "seeds")
    others = f" {left_out} runs on other machines are left out, since their times cannot be compared." * (left_out > 0)
    return Section("Accuracy in equal time", (
        Text(f"{base} trains for {budget / 60:.1f} minutes (minimisation and maximisation, without evaluation). A cell "
             "is the mean accuracy on fixed subsets of the targets at the last candidate that a run had reached by "
             "then, with its step. A minimisation step is taken to last as long as any other of its run. A method that "
             "has ended keeps its last value; 'at the end' compares equal steps."),
        Chart("lines", "Mean accuracy on the targets' subsets against training time (bands: lowest to highest seed)",
              tuple(curves), "minutes", "accuracy (%)", name=f"time-{name or experiment.data}",
              log_x=True),
        Table("", columns, tuple(rows)),
        Text(f"Measured on {machine}.{others}"),
        *_time_to_accuracy(groups),
    ))  # fmt: skip


def on_one_machine(groups: Sequence[Group]) -> tuple[list[Group], str, int]:
    """The groups with their runs on one kind of machine, its name, and the number of runs left out.

    It is the kind on which most groups were run, ERM among them; among equals the one with most runs.
    """
    machines = {run.machine for group in groups if group.method in BASELINES for run in group.runs}
    on = {m: [[run for run in group.runs if run.machine == m] for group in groups] for m in sorted(machines)}
    if not on:
        return [], "", 0
    chosen = max(on, key=lambda m: (sum(map(bool, on[m])), sum(map(len, on[m]))))
    kept = [replace(group, runs=tuple(runs)) for group, runs in zip(groups, on[chosen], strict=True) if runs]
    return kept, chosen, sum(len(group.runs) for group in groups) - sum(map(len, on[chosen]))


def _time_to_accuracy(groups: Sequence[Group]) -> Iterator[Block]:
    """Training minutes until a candidate first reaches ME-ADA's final accuracy on the same subsets."""
    ours = [g for g in groups if g.method == REFERENCE]
    if not ours:
        return
    target = summarise([max(candidates(run).items())[1] for run in ours[0].runs]).mean
    rows: list[tuple[Cell, ...]] = []
    for group in groups:
        first = [next((t for t, v in sorted(candidates(r).items()) if v >= target), None) for r in group.runs]
        minutes = [seconds_at(r, t) / 60 for r, t in zip(group.runs, first, strict=True) if t is not None]
        steps = [t for t in first if t is not None]
        took = (spread(summarise(minutes), 1), _steps(steps)) if steps else (None, None)
        rows.append((group.label, f"{len(minutes)} of {len(first)}", *took))
    yield Table(f"Training minutes to {target:.1f} %, the final accuracy of {ours[0].label}",
                ("method", "seeds that reach it", "minutes", "step"), tuple(rows))  # fmt: skip
    yield Text("The first candidate at or above it counts, even if later ones are below. Candidates are some hundred "
               "steps apart, so the true time is earlier by up to one such interval.")  # fmt: skip


def bill(groups: Iterable[Group]) -> Section:
    """Core-hours of each method over all its seeds, including evaluation."""
    rows: list[tuple[Cell, ...]] = []
    for group in groups:
        known = [hours for run in group.runs if (hours := core_hours(run)) is not None]
        sums = (spread(summarise(known)), sum(known)) if len(known) == len(group.runs) else (None, None)
        rows.append((group.label, len(group.runs), *sums))
    total = sum(row[3] for row in rows if isinstance(row[3], float))
    return Section("Compute cost of each method", (
        Text("Core-hours: seconds of all phases (training, ascent, evaluation) times threads, as the records have "
             f"them; {total:.1f} in all. A row's numbers under every checkpoint come from the same runs."),
        Table("", ("method", "runs", "core-hours a run", "core-hours in all"), tuple(rows), {"core-hours in all": 2}),
    ))  # fmt: skip


def _reached(there: Sequence[tuple[int, float] | None]) -> str:
    known = [one for one in there if one is not None]
    if not known:
        return "no candidate yet"
    some = f"; {len(known)} of {len(there)} seeds" * (len(known) < len(there))
    return f"{spread(summarise([value for _, value in known]))} ({_steps([step for step, _ in known])}{some})"


def _steps(steps: Sequence[int]) -> str:
    low, high = min(steps), max(steps)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def spread(s: Summary, digits: int = 2) -> str:
    """
    >>> spread(Summary(2.0, 1.414, 2)), spread(Summary(1.0, None, 1))
    ('2.00 ± 1.41', '1.00')
    """
    return f"{s.mean:.{digits}f}" + ("" if s.std is None else f" ± {s.std:.{digits}f}")
