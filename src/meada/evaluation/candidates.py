"""Candidates: the network as it stands every so often, scored on small fixed subsets."""

import torch
from torch import nn

from meada.datasets.task import Samples, Task
from meada.evaluation.score import evaluate
from meada.evaluation.validation_shifts import CRAFTED_SETS
from meada.machine.distributed import World
from meada.pool import as_float
from meada.streams import stream
from meada.types import Images, Labels

Labelled = dict[str, tuple[Images, Labels]]


class Candidates:
    """What every candidate of a run is scored on: the same images each time."""

    def __init__(self, task: Task, *, subset: int, crafted_size: int) -> None:
        shifted = fixed_subset("validation", task.validation, crafted_size)
        shifts = CRAFTED_SETS[task.crafted](as_float(shifted.images))
        self._sets: dict[str, Labelled] = {
            "source_val": {"source": _pair(fixed_subset("validation", task.validation, subset))},
            "crafted": {name: (x, shifted.labels) for name, x in shifts.items()},
            "oracle": {n: _pair(fixed_subset(n, s, subset)) for n, s in task.targets.items()},
        }

    def scores(self, net: nn.Module, world: World | None = None, step: int | None = None) -> dict[str, float]:
        """Mean accuracy over what each rule looks at; a rule with nothing to see is left out."""
        scored = {
            rule: evaluate(net, domains, world=world, step=step) for rule, domains in self._sets.items() if domains
        }
        return {rule: sum(float(s["accuracy"]) for s in each.values()) / len(each) for rule, each in scored.items()}


def fixed_subset(name: str, samples: Samples, n: int) -> Samples:
    """The same ``n`` samples of a domain every time, whatever order its file has."""
    order = torch.randperm(len(samples), generator=stream("subset", name))
    return samples[order[:n].sort().values]


def _pair(samples: Samples) -> tuple[Images, Labels]:
    return as_float(samples.images), samples.labels
