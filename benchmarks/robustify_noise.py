"""False positive rate of ``robustify``, and the difference between two plain trainings.

The "method" trains on copies of the clean pictures in the place of views: an exact null. Each run trains a small
network three times on handwritten digits (plain, plain again in another order, and the null method) and asks the rule.

    python -m benchmarks.robustify_noise --runs 40 --out results/robustify/null.json
"""

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from meada.datasets.embedded import embedded
from meada.datasets.task import Samples, Task
from meada.evaluation import predict
from meada.files import write_json
from meada.methods.method import Context, Method
from meada.methods.parts.descent import Descent
from meada.robustify.rule import decide
from meada.robustify.scoring import rule_rows, sets
from meada.robustify.training import Tuning, plain, tune
from meada.streams import key
from meada.types import Batch, Families, Scalar

Right = dict[str, np.ndarray]  # by model: 1 where a picture was classified correctly, or a mean over shifts
TRAINED: Families = frozenset({"tone", "colour", "geometry", "filter", "edges", "blur", "frequency"})
STEPS, BATCH, RATE = 200, 32, 3e-3


def small(classes: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 5, stride=2), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 16, 5, stride=2), nn.ReLU(),
        nn.Flatten(), nn.Linear(16 * 25, classes),
    )  # fmt: skip


def copies(net: nn.Module, batch: Batch, context: Context) -> Scalar:
    """CE(clean) + CE(copy), halved: the loss of plain training."""
    return cross_entropy(net(torch.cat([batch.x, batch.x])), batch.y.repeat(2))


def one_run(task: Task, seed: int) -> tuple[Right, Right, list[str]]:
    """Correct predictions of plain, plain_repeat and the null method from the same initial weights."""
    made = sets(task.validation, {}, trained=TRAINED, shifted_n=len(task.validation), severities=[3, 5], seed=seed)
    rows = {name: made[name]() for name in rule_rows(list(made), TRAINED)}
    methods = {
        "plain": plain(32),
        "plain_repeat": plain(32),
        "hardened": Method(loss=copies, augment=plain(32).augment),
    }
    held, shifted = {}, {}
    for place, (name, method) in enumerate(methods.items()):
        torch.manual_seed(key(seed, "first weights"))
        net = small(len(task.classes))
        order = seed + 1_000_003 * place
        tune(net, task.train, Tuning(method, Descent(lr=RATE, schedule="cosine"), STEPS, BATCH, order))
        held[name] = right(net, task.validation)
        shifted[name] = np.mean([right(net, Samples(x, y)) for x, y in rows.values()], 0)
    return held, shifted, list(rows)


def right(net: nn.Module, samples: Samples) -> np.ndarray:
    guess = predict(net, samples.images).argmax(-1)
    return (guess == samples.labels).numpy().astype(np.float64)


def record(runs: int, train: int, validation: int, first_seed: int, s0: float | None) -> dict[str, Any]:
    """``s0``: the deviation that the rule is given; by default the one between the three trainings of these runs."""
    task: Task = embedded(train=train, validation=validation, test=10)
    found = [one_run(task, seed) for seed in range(first_seed, first_seed + runs)]
    means = [{name: 100 * float(one.mean()) for name, one in shifted.items()} for _, shifted, _ in found]
    # The null method is a third plain training, so all three show how much trainings differ.
    sd = statistics.fmean(statistics.variance(one.values()) for one in means) ** 0.5
    decisions = [decide(held, shifted, sd if s0 is None else s0, rows) for held, shifted, rows in found]
    return {
        "runs": runs, "first_seed": first_seed, "train": len(task.train), "held_out": len(task.validation),
        "steps": STEPS, "run_to_run_sd": sd, "s0": sd if s0 is None else s0,
        "claims": sum(decision.gains["hardened"].beyond_noise for decision in decisions),
        "delivered_other_than_plain": sum(decision.delivered != "plain" for decision in decisions),
        "means": means,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--train", type=int, default=400)
    parser.add_argument("--validation", type=int, default=200)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--s0", type=float, help="default: measured between the three trainings of each run")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    found = record(given.runs, given.train, given.validation, given.first_seed, given.s0)
    if given.out:
        sizes = f"--runs {given.runs} --train {given.train} --validation {given.validation}"
        write_json(given.out, {"command": f"python -m benchmarks.robustify_noise {sizes}", **found})
    print(json.dumps({k: v for k, v in found.items() if k != "means"}, indent=2))


if __name__ == "__main__":
    main()
