"""Checkpoint selection: the rules, and the data that each of them uses."""

from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import nn

from meada.datasets.task import Samples, Task
from meada.evaluation.score import evaluate
from meada.evaluation.validation_shifts import held_out_corruptions, shifted_once, validation_families
from meada.machine.distributed import World
from meada.pool import as_float
from meada.streams import stream
from meada.types import Images, Labels

RULES = (
    "last",
    "averaged",
    "calibrated",
    "source_val",
    "crafted",
    "oracle",
)  # the command line reads it without an import
RULE_TEXTS = {  # how each rule chooses, as reports say it
    "last": "the last training step; no data was used to choose it",
    "averaged": "the mean of the weights over the last part of training; no data was used to choose it",
    "calibrated": "the last training step, its confidence fitted on random views of held-out source images",
    "source_val": "the best on held-out source images",
    "crafted": "the best on held-out source images under crafted shifts",
    "oracle": "the best on the targets themselves, as the published code does",
}

Labelled = dict[str, tuple[Images, Labels]]


class Selection:
    """For each rule the step and score of the best candidate so far; the latest on a tie.

    Every candidate is scored on the same images: small fixed subsets. The rule ``crafted`` looks at
    families of shifts that are not in ``trained``; where the targets are the fifteen corruptions,
    at the four others of their authors.
    """

    def __init__(self, task: Task, *, subset: int, crafted_size: int, trained: Collection[str] = ()) -> None:
        self.steps: dict[str, int] = {}
        self.best: dict[str, float] = {}
        held = fixed_subset("validation", task.validation, crafted_size)
        images, corrupted = as_float(held.images), task.crafted == "corruptions"
        shifts = held_out_corruptions(images) if corrupted else shifted_once(images, validation_families(trained))
        self.seen = {"corruptions" if corrupted else "families": list(shifts)}
        self._sets: dict[str, Labelled] = {
            "source_val": {"source": _pair(fixed_subset("validation", task.validation, subset))},
            "crafted": {name: (x, held.labels) for name, x in shifts.items()},
            "oracle": {n: _pair(fixed_subset(n, s, subset)) for n, s in task.targets.items()},
        }

    def scores(self, net: nn.Module, world: World | None = None, step: int | None = None) -> dict[str, float]:
        """Mean accuracy on the data of each rule; rules without data are left out."""
        seen = {rule: domains for rule, domains in self._sets.items() if domains}
        scored = {rule: evaluate(net, domains, world=world, step=step) for rule, domains in seen.items()}
        return {rule: sum(float(s["accuracy"]) for s in each.values()) / len(each) for rule, each in scored.items()}

    def consider(self, step: int, scores: Mapping[str, float]) -> bool:
        """Update the best candidate of each rule; return whether any changed."""
        better = [r for r, value in scores.items() if value >= self.best.get(r, float("-inf"))]
        for rule in better:
            self.steps[rule], self.best[rule] = step, scores[rule]
        return bool(better)

    def about(self, rule: str) -> dict[str, Any]:
        """A rule's entry in a record: its data and, for ``crafted``, the shifts that it scores."""
        return {"knows": RULE_TEXTS[rule], **(self.seen if rule == "crafted" else {})}

    def state(self) -> dict[str, Any]:
        return {"steps": dict(self.steps), "scores": dict(self.best), "crafted": self.seen}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore from a checkpoint; a ``crafted`` score over other shifts is dropped."""
        self.steps, self.best = dict(state["steps"]), dict(state["scores"])
        if state.get("crafted") != self.seen and "families" in self.seen:
            self.best.pop("crafted", None)


def fixed_subset(name: str, samples: Samples, n: int) -> Samples:
    """A fixed random subset of ``n`` samples of a domain."""
    return samples[subset_positions(name, len(samples), n)]


def subset_positions(name: str, total: int, n: int) -> Labels:
    """Positions of the samples of :func:`fixed_subset`, in order."""
    return torch.randperm(total, generator=stream("subset", name))[:n].sort().values


def _pair(samples: Samples) -> tuple[Images, Labels]:
    return as_float(samples.images), samples.labels
