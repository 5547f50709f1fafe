"""How long runs take that no record tells of: a few real steps of each kind, on noise."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from meada.corruptions import CORRUPTIONS, SEVERITIES
from meada.datasets.pacs import DOMAINS
from meada.datasets.published.catalogue import domain
from meada.datasets.task import Samples
from meada.evaluation.validation_shifts import CRAFTED
from meada.reproduce.cost import classes, sources, train_size
from meada.reproduce.item import Item
from meada.runs.recipe import Recipe, method_of
from meada.runs.run import build_network
from meada.runs.timing_probe import CHOICES, Costs, measure

Tell = Callable[[int, int], None]
DIGITS = ("svhn", "mnist_m", "usps")  # SYN's file can seldom be had
TRIED = 40  # images of a batch that are tried at most: a step's time grows with its batch


def tried_seconds(items: Sequence[Item], tell: Tell = lambda done, total: None) -> dict[str, float]:
    """By the items' names, with the threads that torch has now; what steps alike is tried once."""
    different = {_step_of(item.recipe): item.recipe for item in items}
    costs: dict[str, Costs] = {}
    for steps, recipe in different.items():
        tell(len(costs), len(different))
        costs[steps] = trial(recipe)
    return {item.name: whole(item.recipe, costs[_step_of(item.recipe)]) for item in items}


def _step_of(recipe: Recipe) -> str:
    """What the time of a step depends on; how many there are of it does not matter here."""
    method = {k: v for k, v in recipe.method.items() if k not in ("grow", "beta", "gamma", "units")}
    data = (recipe.data["name"], recipe.data.get("side"), len(recipe.data.get("targets", ())))
    rest = (recipe.network, recipe.loss, recipe.plan.batch_size, recipe.precision)
    return repr((method, data, rest))


def trial(recipe: Recipe) -> Costs:
    """A few steps on noise; of a large batch a part, and as much longer."""
    batch = recipe.plan.batch_size
    few = batch if batch <= TRIED else TRIED // 5
    short = recipe.plan.model_copy(update={"batch_size": few})
    net = build_network(recipe, classes(recipe.data), file=False)
    costs = measure(recipe.model_copy(update={"plan": short}), _noise(recipe), net)
    return replace(costs, step=costs.step * batch / few)


def _noise(recipe: Recipe) -> Samples:
    data, n = recipe.data, max(recipe.plan.batch_size, TRIED)
    side = int(data.get("side", 32))
    images = torch.randint(256, (n, 3, side, side), dtype=torch.uint8)
    domains = torch.arange(n) % len(sources(data)) if data["name"] == "pacs" else None
    return Samples(images, torch.arange(n) % classes(data), domains)


def whole(recipe: Recipe, costs: Costs) -> float:
    """Seconds of all phases.

    >>> from meada.runs.recipe import load_recipe
    >>> costs = Costs(step=0.1, climb=0.01, look=0.0)
    >>> whole(load_recipe("digits/meada"), costs)  # 10,000 steps, 70,000 new images of 15 steps
    11500.0
    """
    method, look = method_of(recipe), recipe.evaluation
    n, rounds = train_size(recipe.data), recipe.plan.rounds
    _, steps = recipe.plan.in_steps(n, method.growth)
    climbed = (method.growth(n, rounds) - n) * int(recipe.method.get("steps", 0))
    targets, images = _tested(recipe.data)
    candidates = -(-steps // look.every)
    looked = candidates * (targets * look.subset + len(CRAFTED) * look.crafted) + CHOICES * images
    return steps * costs.step + climbed * costs.climb + looked * costs.look


def _tested(data: Mapping[str, Any]) -> tuple[int, int]:
    """Targets, and images in all of them, as published."""
    if data["name"] == "pacs":
        held_out = [d for d in DOMAINS if d not in sources(data)]
        return len(held_out), sum(DOMAINS[d] for d in held_out)
    if str(data["name"]).startswith("cifar"):
        each = len(SEVERITIES) * int(data.get("test", 10_000))
        return len(CORRUPTIONS), len(CORRUPTIONS) * each
    return len(DIGITS), sum(domain(name).images for name in DIGITS)
