"""How each checkpoint was chosen, and what each run cost: unequal budgets are seen."""

from meada.evaluation.selection import KNOWS, RULES
from meada.reports.page.blocks import Block, Cell, Section, Table, Text
from meada.reports.page.groups import Experiment, Group
from meada.reports.runs import Run


def chosen(experiment: Experiment) -> Section | None:
    """The four rules, the step that each of them chose, and what came of it."""
    rows: list[tuple[Cell, ...]] = []
    for group in experiment.groups:
        for rule in RULES:
            runs = group.scored(rule)
            if not runs:
                continue
            steps = [r.record.get("selected", {}).get(rule, {}).get("step") for r in runs]
            summary = group.summary(rule, "mean")
            own = [float(r.record["source"][rule]["accuracy"]) for r in runs if "source" in r.record]
            rows.append((
                group.label, rule, ", ".join("?" if s is None else f"{s:,}" for s in steps),
                summary.mean if summary else None, summary.std if summary else None,
                sum(own) / len(own) if own else None, len(runs),
            ))  # fmt: skip
    if not rows:
        return None
    rules = "; ".join(f"{rule}: {what}" for rule, what in KNOWS.items())
    columns = ("method", "rule", "steps chosen", "mean of targets", "std", "source", "seeds")
    return Section("How each checkpoint was chosen", (
        Text("Among the candidates one is kept by each of four rules, which differ in what they "
             f"may know. {rules}."),
        Table("Accuracy (%) of what each rule chose", columns, tuple(rows)),
    ))  # fmt: skip


def spent(experiment: Experiment) -> Section:
    rows = tuple(_row(group, run) for group in experiment.groups for run in group.runs)
    columns = (
        "method", "seed", "gradient steps", "images learnt from", "images made", "ascent passes",
        "minimise (s)", "maximise (s)", "evaluate (s)", "total (s)", "threads", "processor",
    )  # fmt: skip
    blocks: list[Block] = [
        Text("Images learnt from are steps times batch size; ascent passes are the images that a "
             "maximisation phase went through, forwards and backwards.")
    ]  # fmt: skip
    steps = {g.label: {int(r.record.get("steps", 0)) for r in g.runs} for g in experiment.groups}
    if len(set().union(*steps.values())) > 1:
        told = "; ".join(f"{label}: {_several(found)}" for label, found in steps.items())
        blocks.append(Text(f"The budgets are unequal: gradient steps differ ({told}).", "warning"))
    return Section("What was spent", (*blocks, Table("Compute", columns, rows)))


def _row(group: Group, run: Run) -> tuple[Cell, ...]:
    record, plan = run.record, run.recipe.get("plan", {})
    steps, batch = int(record.get("steps", 0)), plan.get("batch_size")
    made = _made(run)
    climbs = run.recipe.get("method", {}).get("steps")
    seconds = record.get("seconds", {})
    where = record.get("environment", {})
    times = [float(seconds[k]) if k in seconds else None for k in ("minimise", "maximise",
                                                                   "evaluate")]  # fmt: skip
    return (
        group.label, run.seed, steps, steps * int(batch) if batch else None, made,
        None if made is None or climbs is None else made * int(climbs), *times,
        float(sum(seconds.values())) if seconds else None,
        where.get("threads"), str(where.get("processor", "unknown")),
    )  # fmt: skip


def _made(run: Run) -> int | None:
    """How many images the rounds added to the pool; unknown where the first size is."""
    sizes = [int(line["pool"]) for line in run.record.get("rounds", []) if "ce" in line]
    if not sizes:
        return 0
    first = run.recipe.get("data", {}).get("train")
    return sizes[-1] - int(first) if isinstance(first, int) and first else None


def _several(found: set[int]) -> str:
    return " and ".join(f"{n:,}" for n in sorted(found))
