"""At equal steps and at equal seconds: what each method had reached when its time was up."""

from collections.abc import Mapping, Sequence

from meada.evaluation.statistics import summarise
from meada.reports.digits import candidates
from meada.reports.runs import Run
from meada.reports.text import head, line, machine, spread

TIMES = (1, 2, 4)  # of the time that ERM takes


def seconds_at(run: Run, step: int) -> float:
    """Training time up to a step: its share of the minimisation, and the rounds before it.

    Evaluation is not counted: candidates are scored to be looked at, not to train.
    """
    total = max(int(run.record["steps"]), 1)
    steps = run.settings.plan.min_steps
    climbed = [r["seconds"] for k, r in enumerate(run.record["rounds"], 1) if k * steps < step]
    return float(run.record["seconds"].get("minimise", 0.0)) * step / total + sum(climbed)


def whole(run: Run) -> float:
    return sum(float(run.record["seconds"].get(k, 0.0)) for k in ("minimise", "maximise"))


def reached(run: Run, seconds: float) -> tuple[int, float] | None:
    """The last candidate within so many seconds: its step and score; None before the first."""
    inside = [(t, v) for t, v in candidates(run).items() if seconds_at(run, t) <= seconds]
    return max(inside) if inside else None


def section(chosen: Mapping[str, Sequence[Run]]) -> list[str]:
    """A table of the mean accuracy on the targets' subsets at multiples of ERM's time."""
    if "erm" not in chosen or not all(candidates(r) for g in chosen.values() for r in g):
        return ["At equal seconds: needs runs of erm, and every run's `log.jsonl`."]
    budget = summarise([whole(run) for run in chosen["erm"]]).mean
    titles = [f"{k} x ERM's time" if k > 1 else "when ERM ends" for k in TIMES]
    lines = head("method", *titles, "at the end", "its training time (min)", "n")
    for method, runs in chosen.items():
        cells = [_cell([reached(run, k * budget) for run in runs]) for k in TIMES]
        end = _cell([max(candidates(run).items()) for run in runs])
        minutes = spread(summarise([whole(run) / 60 for run in runs]), 0)
        lines.append(line(method, *cells, end, minutes, str(len(runs))))
    machines = sorted({machine(run.record["environment"]) for runs in chosen.values() for run in runs})
    return [
        f"ERM's time is {budget / 60:.0f} minutes: minimisation and maximisation, without "
        "evaluation, the mean of its runs. A cell is the last candidate that a run had reached by "
        "then, at the step in brackets: its accuracy on the fixed subsets of the three targets "
        "(600 images each), averaged. A minimisation step is taken to last as long as any other "
        "of its run. A method that has ended keeps its last value; 'at the end' is at equal steps.",
        "",
        *lines,
        "",
        f"Measured on: {'; '.join(machines)}."
        + (" Times of different machines or threads: compare with care." * (len(machines) > 1)),
    ]


def _cell(there: Sequence[tuple[int, float] | None]) -> str:
    if any(one is None for one in there):
        return "no candidate yet"
    known = [one for one in there if one is not None]
    steps = sorted({step for step, _ in known})
    at = f"{steps[0]:,}" if len(steps) == 1 else f"{steps[0]:,} to {steps[-1]:,}"
    return f"{spread(summarise([value for _, value in known]))} ({at})"
