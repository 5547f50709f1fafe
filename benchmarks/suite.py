"""The benchmark suite: every case by name, with a full and a quick size."""

import json
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.cases import blocks, evaluation, gemm, maximise, minimise
from benchmarks.data_path import data_path
from benchmarks.digits_run import digits_run
from benchmarks.measure import Result
from benchmarks.subjects import SUBJECTS
from meada.errors import MeadaError, nearest
from meada.machine.environment import environment

Sizes = dict[str, int]
Tell = Callable[[str, int, int], None]  # the case's name, rounds done, of how many


class Case(NamedTuple):
    run: Callable[..., Result]
    full: Sizes
    quick: Sizes
    subject: str | None = None
    default: bool = True  # whether it runs when no case is asked for


# fmt: off
CASES: dict[str, Case] = {
    "gemm": Case(gemm, {"n": 2048, "rounds": 7}, {"n": 1024, "rounds": 3}),
    "maximise-lenet": Case(
        maximise, {"n": 256, "compared": 128, "exact": 8, "rounds": 3},
        {"n": 64, "compared": 16, "exact": 2, "rounds": 2}, "lenet",
    ),
    "maximise-wideresnet": Case(
        maximise, {"n": 128, "compared": 16, "exact": 2, "rounds": 3},
        {"n": 8, "compared": 2, "exact": 1, "rounds": 2}, "wideresnet",
    ),
    "maximise-alexnet": Case(
        maximise, {"n": 64, "compared": 8, "exact": 2, "rounds": 3},
        {"n": 4, "compared": 2, "exact": 1, "rounds": 1}, "alexnet",
    ),
    "minimise-lenet": Case(
        minimise, {"n": 2048, "steps": 20, "rounds": 7},
        {"n": 512, "steps": 4, "rounds": 3}, "lenet",
    ),
    "minimise-wideresnet": Case(
        minimise, {"n": 512, "steps": 1, "rounds": 5},
        {"n": 16, "steps": 1, "rounds": 3}, "wideresnet",
    ),
    "minimise-alexnet": Case(
        minimise, {"n": 64, "steps": 1, "rounds": 7},
        {"n": 32, "steps": 1, "rounds": 1}, "alexnet",
    ),
    "evaluate-lenet": Case(
        evaluation, {"n": 2048, "rounds": 5}, {"n": 512, "rounds": 3}, "lenet"
    ),
    "evaluate-wideresnet": Case(
        evaluation, {"n": 512, "rounds": 3}, {"n": 64, "rounds": 2}, "wideresnet"
    ),
    "evaluate-alexnet": Case(
        evaluation, {"n": 256, "rounds": 3}, {"n": 32, "rounds": 2}, "alexnet"
    ),
    "data": Case(
        data_path, {"n": 5120, "batch": 128, "rounds": 7},
        {"n": 1280, "batch": 128, "rounds": 3}, "wideresnet",
    ),
    "run": Case(
        digits_run, {"n": 256, "steps": 20, "scored": 2048, "rounds": 3},
        {"n": 64, "steps": 2, "scored": 512, "rounds": 1}, "lenet",
    ),
    "blocks-lenet": Case(
        blocks, {"n": 512, "steps": 2, "rounds": 5},
        {"n": 64, "steps": 1, "rounds": 2}, "lenet", default=False,
    ),
    "blocks-wideresnet": Case(
        blocks, {"n": 256, "steps": 1, "rounds": 3},
        {"n": 32, "steps": 1, "rounds": 1}, "wideresnet", default=False,
    ),
    "blocks-alexnet": Case(
        blocks, {"n": 128, "steps": 1, "rounds": 3},
        {"n": 16, "steps": 1, "rounds": 1}, "alexnet", default=False,
    ),
}
# fmt: on


def choose(asked: Iterable[str]) -> list[str]:
    """Select cases by name or family (the part before the hyphen); by default all except the sweeps.

    >>> choose(["blocks", "gemm"])
    ['blocks-lenet', 'blocks-wideresnet', 'blocks-alexnet', 'gemm']
    """
    chosen: list[str] = []
    for word in asked:
        found = [name for name in CASES if word in (name, name.split("-")[0])]
        if not found:
            families = {name.split("-")[0] for name in CASES}
            raise MeadaError(f"unknown case '{word}': " + nearest(word, families | set(CASES)))
        chosen += found
    return list(dict.fromkeys(chosen)) or [name for name, case in CASES.items() if case.default]


def run_suite(
    names: Iterable[str], *, quick: bool = False, tell: Tell = lambda name, done, total: None
) -> dict[str, Any]:
    """Run the cases; the record names the machine, torch and the number of threads."""
    began, results = time.perf_counter(), {}
    for name in names:
        case = CASES[name]
        subject = [] if case.subject is None else [SUBJECTS[case.subject]()]
        sizes = case.quick if quick else case.full
        tell(name, 0, sizes["rounds"])
        results[name] = case.run(*subject, **sizes, tell=partial(tell, name)).table()
    return {
        "environment": environment(),
        "quick": quick,
        "seconds": round(time.perf_counter() - began, 1),
        "cases": results,
    }


def joined(record: dict[str, Any], path: Path | None) -> dict[str, Any]:
    """Add the other cases in the file at ``path``, which must have the same machine and sizes."""
    if path is None or not path.exists():
        return record
    old = json.loads(path.read_text(encoding="utf-8"))
    if any(old.get(key) != record[key] for key in ("environment", "quick")):
        raise MeadaError(f"{path} must have results of this machine and sizes, got others: move it away")
    cases = old["cases"] | record["cases"]
    return record | {
        "seconds": round(old["seconds"] + record["seconds"], 1),
        "cases": {name: cases[name] for name in CASES if name in cases},
    }
