"""Estimate the duration of runs without a timing record from a few steps on random images."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from meada.datasets import Samples, Sizes, sizes_of
from meada.evaluation.validation_shifts import validation_families
from meada.reproduce.item import Item
from meada.runs.recipe import Recipe, method_of
from meada.runs.run import build_network
from meada.runs.timing_probe import CHOICES, Costs, measure

Tell = Callable[[int, int], None]
TRIED = 40  # images of a batch that are tried at most: a step's time grows with its batch


def tried_seconds(items: Sequence[Item], tell: Tell = lambda done, total: None) -> dict[str, float]:
    """By the items' names, with the threads that torch has now; what steps alike is tried once.

    Runs on data whose size is not known before it is read are left out.
    """
    known = [(item, sizes) for item in items if (sizes := sizes_of(item.recipe.data)) is not None]
    different = {_step_of(item.recipe): (item.recipe, sizes) for item, sizes in known}
    costs: dict[str, Costs] = {}
    for steps, (recipe, sizes) in different.items():
        tell(len(costs), len(different))
        costs[steps] = trial(recipe, sizes)
    return {item.name: whole(item.recipe, sizes, costs[_step_of(item.recipe)]) for item, sizes in known}


def _step_of(recipe: Recipe) -> str:
    """What the time of a step depends on; how many there are of it does not matter here."""
    method = {k: v for k, v in recipe.method.items() if k not in ("grow", "beta", "gamma", "units")}
    data = (recipe.data["name"], recipe.data.get("side"), len(recipe.data.get("targets", ())))
    rest = (recipe.network, recipe.loss, recipe.plan.batch_size, recipe.precision)
    return repr((method, data, rest))


def trial(recipe: Recipe, sizes: Sizes) -> Costs:
    """A few steps on noise; of a large batch a part, and as much longer."""
    batch = recipe.plan.batch_size
    few = batch if batch <= TRIED else TRIED // 5
    short = recipe.plan.model_copy(update={"batch_size": few})
    net = build_network(recipe, sizes.classes, file=False)
    costs = measure(recipe.model_copy(update={"plan": short}), _noise(recipe, sizes), net)
    return replace(costs, step=costs.step * batch / few)


def _noise(recipe: Recipe, sizes: Sizes) -> Samples:
    n = max(recipe.plan.batch_size, TRIED)
    images = torch.randint(256, (n, 3, sizes.side, sizes.side), dtype=torch.uint8)
    domains = torch.arange(n) % sizes.sources if sizes.sources > 1 else None
    return Samples(images, torch.arange(n) % sizes.classes, domains)


def whole(recipe: Recipe, sizes: Sizes, costs: Costs) -> float:
    """Seconds of all phases.

    >>> from meada.runs.recipe import load_recipe
    >>> costs, recipe = Costs(step=0.1, climb=0.01, look=0.0), load_recipe("digits/meada")
    >>> whole(recipe, sizes_of(recipe.data), costs)  # 10,000 steps, 70,000 new images of 15 steps
    11500.0
    """
    method, look = method_of(recipe), recipe.evaluation
    n, rounds = sizes.train, recipe.plan.rounds
    _, steps = recipe.plan.in_steps(n, method.growth)
    climbed = (method.growth(n, rounds) - n) * int(recipe.method.get("steps", 0))
    candidates = -(-steps // look.every)
    shifts = len(validation_families(method.families))
    looked = candidates * (len(sizes.targets) * look.subset + shifts * look.crafted)
    looked += CHOICES * sum(sizes.targets.values())
    return steps * costs.step + climbed * costs.climb + looked * costs.look
