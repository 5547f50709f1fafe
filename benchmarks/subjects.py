"""The three benchmarked networks, each built from the recipe of its experiment."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import nn

from benchmarks.published import Ascent
from benchmarks.published_networks import Network
from meada.methods import Method
from meada.pool import Pool, as_float
from meada.runs.network import build_network
from meada.runs.recipe import Recipe, load_recipe, method_of
from meada.streams import stream
from meada.types import Images8, Labels

DIGITS, CIFAR, PACS = "digits/meada", "cifar10c/wideresnet-meada", "pacs/meada-art_painting"
STEPS = 15  # of the ascent, on PACS too, where the recipe has 50: one is like another


@dataclass(frozen=True)
class Subject:
    """A recipe and the shape of its data; ``pictures`` if the published code uses Pillow images."""

    recipe: Recipe
    pixels: int  # height and width
    classes: int
    pictures: bool

    @property
    def block(self) -> int:
        return int(self.recipe.method["block"])

    @property
    def batch(self) -> int:
        return self.recipe.plan.batch_size

    @property
    def ascent(self) -> Ascent:
        """The recipe's method settings, in the published code's units."""
        method = self.recipe.method
        return Ascent(
            lr_max=method["step_size"],
            eta=method["beta"],
            gamma=method["gamma"],
            loops_adv=method["steps"],
            batch=method["units_batch"],
        )

    @cached_property
    def net(self) -> nn.Module:
        """The network of a run, with random weights and batch-norm statistics of the data."""
        net = build_network(self.recipe, self.classes, file=False)
        settle(net, self.images(32))
        return net

    def published(self) -> Network:
        return Network(self.net, self.recipe.embedding)

    @property
    def method(self) -> Method:
        return method_of(self.recipe)

    @property
    def embedding(self) -> str | None:
        return self.recipe.embedding or None

    def images(self, n: int) -> Images8:
        """Smooth random images: upsampled noise."""
        coarse = torch.rand(n, 3, 8, 8, generator=stream("bench", "images", n))
        fine = nn.functional.interpolate(coarse, size=self.pixels, mode="bilinear")
        return fine.mul(255).round().byte()

    def labels(self, n: int) -> Labels:
        return torch.randint(self.classes, (n,), generator=stream("bench", "labels", n))

    def pool(self, n: int, **options: Any) -> Pool:
        store = options.pop("store", self.recipe.pool.store)
        return Pool(self.images(n), self.labels(n), store=store, **options)


def with_method(subject: Subject, **changes: Any) -> Subject:
    recipe = subject.recipe
    return replace(subject, recipe=recipe.model_copy(update={"method": recipe.method | changes}))


def at_size(subject: Subject, n: int) -> Subject:
    """The same step of each sample where only ``n`` images are available, fewer than a batch.

    >>> few = at_size(SUBJECTS["wideresnet"](), 32)
    >>> few.ascent.lr_max / few.ascent.batch == 20 / 128, few.block, few.batch
    (True, 32, 32)
    """
    whole = subject.ascent
    batch = min(n, whole.batch)
    plan = subject.recipe.plan.model_copy(update={"batch_size": min(n, subject.batch)})
    fewer = replace(subject, recipe=subject.recipe.model_copy(update={"plan": plan}))
    return with_method(
        fewer,
        step_size=whole.lr_max * batch / whole.batch,
        units_batch=batch,
        block=min(n, subject.block),
    )


@torch.no_grad()
def settle(net: nn.Module, images: Images8) -> None:
    """Set the batch-norm statistics to those of the data, as early in training."""
    norms = [module for module in net.modules() if isinstance(module, nn.BatchNorm2d)]
    before = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 1.0  # the statistics of the last batch alone
    net.train()(as_float(images))
    for norm, momentum in zip(norms, before, strict=True):
        norm.momentum = momentum
    net.eval()


def _short(recipe: Recipe) -> Recipe:
    return recipe.model_copy(update={"method": recipe.method | {"steps": STEPS}})


SUBJECTS: dict[str, Callable[[], Subject]] = {
    "lenet": lambda: Subject(load_recipe(DIGITS), 32, 10, pictures=False),
    "wideresnet": lambda: Subject(load_recipe(CIFAR), 32, 10, pictures=True),
    "alexnet": lambda: Subject(_short(load_recipe(PACS)), 224, 7, pictures=False),
}
