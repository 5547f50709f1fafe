"""What a step of each phase costs here: a few real ones, on copies."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import torch
from torch import nn

from meada.algorithm import Watch, begin, train
from meada.corruptions import CORRUPTIONS, corrupt
from meada.datasets.task import Samples
from meada.evaluation import predict
from meada.methods.method import Method
from meada.pool import Pool
from meada.runs.recipe import Recipe, method_of
from meada.types import Images8

STEPS = 3  # minimisation steps that are timed, after one that is not
LOOKED = 32  # pictures read at once, at most
CHOICES = 3  # checkpoints of a run that are scored on whole test sets, besides ties
CORRUPTED = 2  # pictures under each corruption


@dataclass(frozen=True)
class Costs:
    """Seconds, each measured on this machine with this network."""

    step: float  # a minimisation step on a batch
    climb: float  # an ascent step on one picture
    look: float  # reading one picture
    corrupt: float = 0.0  # corrupting one picture, a mean over the fifteen


def measure(recipe: Recipe, samples: Samples, net: nn.Module) -> Costs:
    """``net`` is trained for a few steps: give it a copy."""
    method = method_of(recipe)
    some = samples.first(max(recipe.plan.batch_size, LOOKED))
    pool = Pool(some.images, some.labels, some.domains, store=recipe.pool.store)
    step = _step(recipe, method, net, pool)
    return Costs(
        step=step,
        climb=_climb(recipe, method, net, pool),
        look=_look(net, some.images[:LOOKED]),
    )


def _step(recipe: Recipe, method: Method, net: nn.Module, pool: Pool) -> float:
    marks: list[float] = []
    watch = Watch(stepped=lambda *_: marks.append(time.perf_counter()))
    _train(recipe, method, net, pool, watch, rounds=0, total_steps=1 + STEPS)
    return median(after - before for before, after in pairwise(marks))


def _climb(recipe: Recipe, method: Method, net: nn.Module, pool: Pool) -> float:
    """One ascent step on one picture; nothing where the method does not climb."""
    steps = recipe.method.get("steps")
    if not steps or method.growth(1, 1) == 1:
        return 0.0
    short = {**recipe.method, "steps": 2}
    brief = method_of(recipe.model_copy(update={"method": short}))
    n = min(len(pool), int(recipe.method.get("block", LOOKED)))
    few = Pool(pool.images(torch.arange(n)), pool.labels[:n], pool.domains[:n])
    round_ = lambda: _train(recipe, brief, net, few, Watch(), rounds=1, total_steps=0)
    return _seconds(round_) / (2 * n)


def _train(recipe: Recipe, method: Method, net: nn.Module, pool: Pool, watch: Watch, **length: int) -> None:
    plan = recipe.plan.model_copy(update={"min_steps": 0, "unit": "steps", **length})
    place = recipe.embedding or None
    training = begin(net, pool, method, recipe.descent, embedding=place)
    train(training, pool, method, plan, recipe.descent, embedding=place, watch=watch)


def _look(net: nn.Module, images: torch.Tensor) -> float:
    predict(net, images)  # the first one is slower
    return _seconds(lambda: predict(net, images)) / len(images)


def corrupting(images: Images8) -> float:
    """``Costs.corrupt``, of pictures like these."""
    few = images[:CORRUPTED]

    def all_of_them() -> None:
        for name in CORRUPTIONS:
            corrupt(few, name, 3)

    all_of_them()  # filters and maps are made once
    return _seconds(all_of_them) / (len(few) * len(CORRUPTIONS))


def _seconds(work: Callable[[], object]) -> float:
    since = time.perf_counter()
    work()
    return time.perf_counter() - since
