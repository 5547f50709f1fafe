"""What a step of each phase costs here: a few real ones, on copies."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch
from torch import nn

from meada.algorithm import begin
from meada.corruptions import CORRUPTIONS, corrupt
from meada.datasets.task import Samples
from meada.evaluation import predict
from meada.methods.method import Context, Method
from meada.minimise import minimise
from meada.pool import Pool
from meada.recipe import Recipe, method_of

STEPS = 3  # minimisation steps that are timed, after one that is not
LOOKED = 32  # pictures read at once, at most
CORRUPTED = 2  # pictures under each corruption


@dataclass(frozen=True)
class Costs:
    """Seconds, each measured on this machine with this network."""

    step: float  # a minimisation step on a batch
    climb: float  # an ascent step on one picture
    look: float  # reading one picture
    corrupt: float  # corrupting one picture, a mean over the fifteen


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
        corrupt=_corrupt(some.images[:CORRUPTED]),
    )


def _step(recipe: Recipe, method: Method, net: nn.Module, pool: Pool) -> float:
    training = begin(net, pool, method, recipe.descent, embedding=recipe.embedding or None)
    context = Context(parts=training.parts, total_steps=recipe.plan.total_steps or 1)
    taken, since = [], time.perf_counter()
    with torch.random.fork_rng():
        for _ in minimise(
            training, pool, method.loss, recipe.descent, context,
            augment=method.augment, until=1 + STEPS, batch_size=recipe.plan.batch_size,
        ):  # fmt: skip
            taken.append(time.perf_counter() - since)
            since = time.perf_counter()
    return median(taken[1:])


def _climb(recipe: Recipe, method: Method, net: nn.Module, pool: Pool) -> float:
    """One ascent step on one picture; nothing where the method does not climb."""
    steps = recipe.method.get("steps")
    if not steps or method.growth(1, 1) == 1:
        return 0.0
    short = {**recipe.method, "steps": 2}
    brief = method_of(recipe.model_copy(update={"method": short}))
    n = min(len(pool), int(recipe.method.get("block", LOOKED)))
    few = Pool(pool.images(torch.arange(n)), pool.labels[:n], pool.domains[:n])
    context = Context(embedding=recipe.embedding or None, pool_size=n)
    return _seconds(lambda: brief.grow(net, few, context)) / (2 * n)


def _look(net: nn.Module, images: torch.Tensor) -> float:
    predict(net, images)  # the first one is slower
    return _seconds(lambda: predict(net, images)) / len(images)


def _corrupt(images: torch.Tensor) -> float:
    def all_of_them() -> None:
        for name in CORRUPTIONS:
            corrupt(images, name, 3)

    all_of_them()  # filters and maps are made once
    return _seconds(all_of_them) / (len(images) * len(CORRUPTIONS))


def _seconds(work: Callable[[], object]) -> float:
    since = time.perf_counter()
    work()
    return time.perf_counter() - since
