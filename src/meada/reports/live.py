"""A run as it goes: what its log says so far, and whether a process is at work on it."""

import fcntl
from collections.abc import Iterator
from pathlib import Path

from meada.reports.runs import Run, find_runs


def at_work(path: Path) -> bool:
    """Whether somebody holds the run's lock; it is looked at, never kept."""
    try:
        with open(path / ".lock") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
    except BlockingIOError:
        return True
    except OSError:
        return False


def going_on(folder: Path) -> bool:
    """Whether any run in the folder or below it is being trained."""
    return any(at_work(lock.parent) for lock in folder.rglob(".lock"))


def lines(folder: Path) -> Iterator[str]:
    """What a terminal shows of every run in the folder."""
    for run in find_runs([folder]):
        yield from _about(run)


def _about(run: Run) -> Iterator[str]:
    total = run.recipe.get("plan", {}).get("total_steps")
    state = "finished" if run.finished else "running" if at_work(run.folder.path) else "stopped"
    unit = "" if run.recipe.get("plan", {}).get("unit", "steps") == "steps" else " (in epochs)"
    yield (f"{run.name}: {run.method}, seed {run.seed}, {state}; step {run.record['steps']:,} of {total}{unit}")
    where = run.folder.load_position() if state == "running" else None
    if where:
        phase, done, total = where
        yield f"  {phase}: {done:,} of {total:,}"
    for line in [line for line in run.log if "loss" in line][-1:]:
        yield f"  at step {line['step']:,}: loss {line['loss']:.4f}"
    for line in [line for line in run.log if "scores" in line][-1:]:
        scores = ", ".join(f"{rule} {value:.1f} %" for rule, value in line["scores"].items())
        yield f"  candidate at step {line['step']:,}: {scores}"
    for line in run.record.get("rounds", []):
        ce = "; CE {:.3f} > {:.3f}".format(*line["ce"]) if "ce" in line else ""
        yield f"  round {line['round']}: pool {line['pool']:,}{ce}"
    for name, found in run.results("last").items():
        yield f"  {name}: {found['accuracy']:.1f} %"
