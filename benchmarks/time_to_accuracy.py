"""Training seconds until the mean accuracy on unseen digit domains exceeds that of a finished ME-ADA run.

    MEADA_DATA=... OMP_NUM_THREADS=1 python -m benchmarks.time_to_accuracy --out benchmarks/time_to_accuracy.json

The target, 60.2, is the last-step mean of our own ME-ADA over SVHN, MNIST-M and USPS (results/README.md). Each method
trains by its own recipe; a fixed subset of every domain is scored every ``--every`` steps, outside the clock, which is
the processor's. The file is written after every method, next to those already in it. ``published`` is the published
loop: its network, its ascent, its order of work.
"""

import argparse
import io
import json
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from benchmarks.hardness import fitted
from benchmarks.published import Ascent
from benchmarks.published import evaluate as published_evaluate
from benchmarks.published import maximise as published_maximise
from benchmarks.published import minimise as published_minimise
from benchmarks.published import optimiser as published_optimiser
from benchmarks.published_networks import Network
from meada.algorithm import Watch
from meada.datasets import Task
from meada.errors import MeadaError
from meada.evaluation import evaluate
from meada.evaluation.selection import fixed_subset
from meada.files import write_json
from meada.machine.environment import environment
from meada.minimise import Training
from meada.pool import as_float
from meada.runs.functions import make
from meada.runs.network import build_network
from meada.runs.recipe import Recipe, load_recipe
from meada.runs.run_folder import read_json
from meada.streams import stream

TARGET, SUBSET = 60.2, 600
METHODS = ("published", "meada", "randconv", "tilted-random", "tilted")
Curve = list[tuple[int, float, float]]  # step, training seconds so far, mean accuracy


class Reached(Exception):
    """Raised to stop training once the target is reached."""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--every", type=int, default=50)
    options.add_argument("--only", choices=METHODS, action="append")
    options.add_argument("--out", type=Path)
    chosen = options.parse_args()
    for name in chosen.only or METHODS:
        made = record(name, curve(name, chosen.seed, chosen.every), chosen.seed, chosen.every)
        print(json.dumps({name: made["seconds_to_target"][name]}), flush=True)
        if chosen.out:
            write_json(chosen.out, merged(chosen.out, made))


def record(name: str, points: Curve, seed: int, every: int) -> dict[str, Any]:
    return {
        "command": f"python -m benchmarks.time_to_accuracy --seed {seed} --every {every}",
        "environment": environment(),
        "target": TARGET,
        "subset": SUBSET,
        "seconds_to_target": {name: to_target(points)},
        "curves": {name: [[step, round(s, 2), round(a, 2)] for step, s, a in points]},
    }


def merged(path: Path, made: dict[str, Any]) -> dict[str, Any]:
    """Add the curves of other methods in the file, if machine and command are the same."""
    if not path.exists():
        return made
    held = read_json(path)
    parts = ("seconds_to_target", "curves")
    if any(held.get(k) != v for k, v in made.items() if k not in parts):
        raise MeadaError(f"{path} must have curves of this machine and command, got others: give another --out")
    return made | {k: held[k] | made[k] for k in parts}


def to_target(points: Curve) -> float | None:
    """
    >>> to_target([(50, 3.0, 41.0), (100, 6.5, 60.5)])
    6.5
    """
    return next((seconds for _, seconds, accuracy in points if accuracy >= TARGET), None)


def curve(name: str, seed: int, every: int) -> Curve:
    recipe = load_recipe("digits/meada" if name == "published" else f"digits/{name}", seed=seed)
    task: Task = make("data", recipe.data)
    return published_curve(recipe, task, every) if name == "published" else own_curve(recipe, task, every)


def own_curve(recipe: Recipe, task: Task, every: int) -> Curve:
    tests = {n: (as_float(s.images), s.labels) for n, s in subsets(task)}
    points: Curve = []
    spent, since = 0.0, time.process_time()

    def stepped(training: Training, *_: object) -> None:
        nonlocal spent, since
        if training.step % every:
            return
        spent += time.process_time() - since
        scores = evaluate(training.net, tests)
        points.append((training.step, spent, sum(s["accuracy"] for s in scores.values()) / len(scores)))
        if points[-1][2] >= TARGET:
            raise Reached
        since = time.process_time()

    with suppress(Reached):
        fitted(recipe, task, Watch(stepped=stepped))
    return points


def published_curve(recipe: Recipe, task: Task, every: int) -> Curve:
    """Accuracy over time of the published loop, which doubles the pool in every round."""
    torch.manual_seed(recipe.seed)
    net, log, plan = Network(build_network(recipe, len(task.classes))), io.StringIO(), recipe.plan
    images, labels = as_float(task.train.images), task.train.labels
    beta, steps = float(recipe.method["beta"]), int(recipe.method["steps"])
    how = Ascent(lr_max=1.0, eta=beta, gamma=1.0, loops_adv=steps, batch=32)
    descent = published_optimiser(net, recipe.descent)
    tests = [(as_float(s.images), s.labels) for _, s in subsets(task)]
    points: Curve = []
    spent, step = 0.0, 0
    orders = batches(lambda: len(labels), plan.batch_size, recipe.seed)
    while step < plan.total_steps:
        began = time.process_time()
        published_minimise(net, descent, images, labels, [next(orders) for _ in range(every)], log)
        step += every
        if step % plan.min_steps == 0 and step // plan.min_steps <= plan.rounds:
            born = torch.cat(published_maximise(net, images, labels, how, log))
            images, labels = torch.cat([images, born]), torch.cat([labels, labels[: len(born)]])
        spent += time.process_time() - began
        points.append((step, spent, sum(published_evaluate(net, *one) for one in tests) / len(tests)))
        if points[-1][2] >= TARGET:
            break
    return points


def batches(size: Any, batch: int, seed: int) -> Iterator[torch.Tensor]:
    epoch = 0
    while True:
        yield from torch.randperm(size(), generator=stream(seed, "published order", epoch)).split(batch)
        epoch += 1


def subsets(task: Task) -> Iterator[tuple[str, Any]]:
    for name, samples in task.targets.items():
        yield name, fixed_subset(name, samples, SUBSET)


if __name__ == "__main__":
    main()
