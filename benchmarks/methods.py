"""Cost of a training step of each method of Table 2, relative to AGG (ERM on the pooled sources).

    OMP_NUM_THREADS=1 python -m benchmarks.methods --out benchmarks/methods.json

AlexNet at 224x224 by the method's own recipe, 33 random pictures of three sources a step (AGG: 32),
nine tenths into the run, when all of a method is at work. Steps are timed in turn with AGG's in one
process, by the processor's clock; memory is the peak of a process that takes two steps. Methods
that grow the pool are `meada bench`'s.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.measure import Side, Spread, interleave, speedup, work
from benchmarks.memory import peak_mb
from benchmarks.subjects import Subject
from meada.algorithm import begin
from meada.files import write_json
from meada.machine.environment import environment
from meada.methods.method import Context
from meada.minimise import minimise
from meada.pool import Pool
from meada.runs.network import build_network
from meada.runs.recipe import load_recipe, method_of

LATE = 0.9  # of a run
CASES: dict[str, tuple[str, float, list[str]]] = {  # method, where its run stands, changes
    "agg": ("agg", LATE, []),
    "par": ("par", LATE, []),
    "hex": ("hex", LATE, []),
    "dsn": ("dsn", LATE, []),
    "l-cnn": ("l-cnn", LATE, []),
    "mldg": ("mldg", LATE, []),
    "mldg, first order": ("mldg", LATE, ["method.order=first"]),
    "fusion": ("fusion", LATE, []),
    "metareg, first stage": ("metareg", 0.1, []),
    "metareg, second stage": ("metareg", LATE, []),
    "epi-fcr": ("epi-fcr", LATE, []),
}
SOURCES, EACH, CLASSES, PIXELS = 3, 33, 7, 224


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=5, help="number of steps per side")
    options.add_argument("--only", choices=CASES, action="append", help="measure only this method")
    options.add_argument("--out", type=Path)
    options.add_argument("--child", nargs=2, metavar=("WHAT", "CASE"), help="measure this in the current process")
    chosen = options.parse_args()
    if chosen.child:
        what, case = chosen.child
        print(json.dumps(times(case, chosen.rounds) if what == "times" else memory(case)))
        return
    record = {
        "command": f"python -m benchmarks.methods --rounds {chosen.rounds}",
        "environment": environment(),
        "cases": {case: measured(case, chosen.rounds) for case in chosen.only or CASES},
    }
    print(json.dumps(record, indent=2))
    if chosen.out:
        write_json(chosen.out, record)


def measured(case: str, rounds: int) -> dict[str, Any]:
    """Measure times and memory in separate processes, since peak memory never falls."""
    found: dict[str, Any] = {}
    for what in ("times", "memory"):
        command = [sys.executable, "-m", "benchmarks.methods", "--rounds", str(rounds), "--child", what, case]
        found |= json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return found


def times(case: str, rounds: int) -> dict[str, Any]:
    """CPU seconds per step of AGG and of the case, and their ratio, per round."""
    sides = {"agg": steps("agg"), "it": steps(case)}
    interleave(sides, 1)  # optimisers make their state in the first step
    taken = interleave(sides, rounds, clock=time.process_time)
    return {
        "agg_seconds": vars(Spread.of(taken["agg"])),
        "seconds": vars(Spread.of(taken["it"])),
        "times_agg": vars(speedup(taken["it"], taken["agg"])),
    }


def memory(case: str) -> dict[str, Any]:
    interleave({case: steps(case)}, 2)
    return {"peak_mb": peak_mb()}


def steps(case: str) -> Side:
    """Yield after each training step of the case."""
    name, share, changes = CASES[case]
    recipe = load_recipe(f"pacs/{name}-sketch", changes)
    subject = Subject(recipe, PIXELS, CLASSES, pictures=False)
    method, n, total = method_of(recipe), SOURCES * EACH, recipe.plan.total_steps
    domains = torch.arange(n) % SOURCES
    pool = Pool(subject.images(n), subject.labels(n), domains, store="uint8")
    net, embedding = build_network(recipe, CLASSES, file=False), subject.embedding
    training = begin(net, pool, method, recipe.descent, embedding=embedding)
    training.step = int(share * total)
    context = Context(
        total_steps=total,
        domains=tuple(range(SOURCES)),
        embedding=embedding,
        parts=training.parts,
    )

    def step() -> None:
        for _ in minimise(
            training, pool, method.loss, recipe.descent, context,
            augment=method.augment, until=training.step + 1, batch_size=recipe.plan.batch_size,
        ):  # fmt: skip
            pass

    return work(step)


if __name__ == "__main__":
    main()
