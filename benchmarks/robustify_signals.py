"""Compare source-only signals for choosing the candidate that is best on the test folders.

    python -m benchmarks.robustify_signals RUN [RUN ...] --out results/robustify/signals.json

Each RUN is a folder that ``meada robustify --test ...`` wrote; runs that the file has already are kept. A signal gives
every candidate a number from held-out pictures of the source alone; the test folders only say, afterwards, how good
its choice was.
"""

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr
from torch import Tensor

from benchmarks.robustify_records import DELIVERABLE, unseen
from meada.evaluation.selection import fixed_subset
from meada.files import write_json
from meada.networks.embedding import features
from meada.robustify.pipeline import division, load
from meada.robustify.plan import Plan, Request
from meada.robustify.progress import progress
from meada.robustify.scoring import Scores, rule_rows
from meada.robustify.stages import Work, capped
from meada.runs.checkpoint import read_weights
from meada.runs.run_folder import read_json

NEIGHBOUR, FAR, CAPPED = 10, 0.25, 4000  # of the training pictures; share of the held-out ones; pictures looked at
Signal = dict[str, float]  # by candidate; the largest is chosen


class Run:
    """Scores, weights and outcome of one run of ``robustify``."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.outcome = folder, json.loads((folder / "outcome.json").read_text("utf-8"))
        self.candidates = [name for name in DELIVERABLE if name in self.outcome["candidates"]]
        names = json.loads((folder / "stages" / "score.json").read_text("utf-8"))["sets"]
        self.scores = Scores(folder / "scores", names, list(self.outcome["candidates"]))
        self.rows = rule_rows(names, frozenset(self.outcome["trained_families"]))

        self.far, self.shifted = far_pictures(folder, self.outcome)

    def each(self, measure: Callable[[str], float]) -> Signal:
        return {name: float(measure(name)) for name in self.candidates}

    def probabilities(self, name: str, row: str) -> np.ndarray:
        logits = self.scores.logits(name, row)
        return np.asarray((logits.softmax(-1) if self.outcome["labels"] == "one" else logits.sigmoid()).numpy())


def far_pictures(folder: Path, outcome: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
    """Mask of the farthest quarter of the held-out pictures, and positions of those scored under shifts."""
    held = json.loads((folder / "plan.json").read_text("utf-8"))
    request = Request(**{**held["request"], "tests": (), "changes": ()})
    plan = Plan(**outcome["plan"])
    with progress(quiet=True) as bar:
        whole = Plan(**held["budget"]["whole"])
        task = load(division(request, whole, bar), whole, bar)
    net = Work(request, folder, task, plan).load("probe" if plan.pretrained else "plain")
    train, other = (features(net, capped(one, CAPPED).images) for one in (task.train, task.validation))
    distance = torch.cdist(other, train).kthvalue(min(NEIGHBOUR, len(train))).values
    every = replace(task.validation, labels=torch.arange(len(task.validation)))
    positions = fixed_subset("robustness", every, plan.shifted).labels
    return distance >= distance.quantile(1 - FAR), positions


def accuracy(run: Run, *rows: str) -> Signal:
    return run.each(lambda name: 100 * run.scores.correct(name, rows).mean())


def agreement(run: Run) -> Signal:
    """Share of shifted pictures on which a candidate predicts the same class as the mean of all."""
    mean = {row: np.mean([run.probabilities(name, row) for name in run.candidates], 0).argmax(-1) for row in run.rows}
    same = lambda name, row: (run.probabilities(name, row).argmax(-1) == mean[row]).mean()
    return run.each(lambda name: fmean(same(name, row) for row in run.rows))


def confidence(run: Run) -> Signal:
    """Mean probability of the predicted class on shifted pictures."""
    return run.each(lambda name: fmean(run.probabilities(name, row).max(-1).mean() for row in run.rows))


def nearness(run: Run) -> Signal:
    """Negative relative distance of the backbone's weights from the pretrained ones (those of the probe)."""
    weights = {name: read_weights(run.folder / "candidates" / f"{name}.safetensors")[0] for name in run.candidates}
    if "probe" not in weights:
        return {}
    shared = [key for key, value in weights["probe"].items() if value.ndim == 4]  # convolutions: no head, no statistics
    norm = lambda one: sum(float((one[k] - weights["probe"][k]).pow(2).sum()) for k in shared) ** 0.5
    return run.each(lambda name: -norm(weights[name]))


def far(run: Run, *rows: str) -> Signal:
    """Accuracy on the quarter of the held-out pictures that lie farthest from the training pictures.

    A held-out cluster without a second training (compare arXiv 2405.19461, which trains on the other clusters): the
    distance is that to the tenth nearest training picture, in the features of the probe, or of plain from scratch.
    """
    whole, some = run.far.numpy(), run.far[run.shifted].numpy()
    chosen = lambda row: whole if row == "held_out" else some
    right = lambda name: [run.scores.correct(name, [row])[0][chosen(row)].mean() for row in rows]
    return run.each(lambda name: 100 * fmean(right(name)))


SIGNALS: Mapping[str, Callable[[Run], Signal]] = {
    "rule: untrained corruptions and shifts": lambda run: accuracy(run, *run.rows),
    "held out, as they are": lambda run: accuracy(run, "held_out"),
    "all fifteen corruptions": lambda run: accuracy(run, *run.scores.group("corruption/")),
    "untrained shifts alone": lambda run: accuracy(run, *run.scores.group("shift/")),
    "agreement of the candidates": agreement,
    "confidence": confidence,
    "far held-out pictures, as they are": lambda run: far(run, "held_out"),
    "far held-out pictures, rule": lambda run: far(run, *run.rows),
    "nearness to the pretrained weights": nearness,
}


def judge(run: Run, signal: Signal) -> dict[str, Any]:
    """The candidate that the signal chooses, and its gap to the best on the tests."""
    tests = {name: unseen(run.outcome, name) for name in signal}
    chosen = max(signal, key=signal.__getitem__)
    order = spearmanr(list(signal.values()), list(tests.values())).statistic
    return {"chosen": chosen, "below_best": max(tests.values()) - tests[chosen], "rank_correlation": float(order),
            "values": signal}  # fmt: skip


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("runs", type=Path, nargs="+")
    options.add_argument("--out", type=Path)
    given = options.parse_args()
    found: dict[str, dict[str, Any]] = read_json(given.out) if given.out and given.out.exists() else {}
    for folder in given.runs:
        run = Run(folder)
        tests = {name: unseen(run.outcome, name) for name in run.candidates}
        signals = {name: judge(run, values) for name, signal in SIGNALS.items() if (values := signal(run))}
        found[folder.name] = {"tests": tests, "delivered": run.outcome["delivered"], "signals": signals}
    if given.out:
        write_json(given.out, found)
    for name in SIGNALS:
        of = [one["signals"][name] for one in found.values() if name in one["signals"]]
        if of:
            below, order = ([one[key] for one in of] for key in ("below_best", "rank_correlation"))
            print(f"{name}: within a point of the best in {sum(b <= 1 for b in below)} of {len(of)}, "
                  f"{fmean(below):.1f} points below it on average, rank correlation {fmean(order):.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
