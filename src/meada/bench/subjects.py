"""What is measured: three networks, each with the settings that its experiment has."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import nn

from meada.bench.published import Ascent, Network
from meada.methods import Method
from meada.networks.alexnet import alexnet
from meada.networks.lenet import lenet
from meada.networks.wideresnet import wideresnet
from meada.optimise import Descent
from meada.pool import Pool, Store, as_float
from meada.recipe import load_recipe, make
from meada.streams import key, stream
from meada.types import Images8, Labels

DIGITS = "digits/meada"


@dataclass(frozen=True)
class Subject:
    """A network, the shape of its data, and how both sides train it."""

    network: Callable[..., nn.Module]
    pixels: int  # height and width
    classes: int
    method: dict[str, Any]  # as a recipe's [method] table has it, in the published code's units
    descent: Descent
    store: Store
    batch: int  # of both phases in the published code
    pictures: bool  # whether the published code holds its data as pictures, not as arrays

    @property
    def ascent(self) -> Ascent:
        return Ascent(
            lr_max=self.method["step_size"],
            eta=self.method["beta"],
            gamma=self.method["gamma"],
            loops_adv=self.method["steps"],
            batch=self.method["units_batch"],
        )

    @cached_property
    def net(self) -> nn.Module:
        """The network that both sides share, with settled batch norms."""
        with torch.random.fork_rng():
            torch.manual_seed(key("bench"))
            net = self.network(num_classes=self.classes)
        settle(net, self.images(32))
        return net

    def published(self) -> Network:
        return Network(self.net)

    def make_method(self, **changes: Any) -> Method:
        return make("method", self.method | changes)

    def images(self, n: int) -> Images8:
        """Smooth random pictures: noise of a few pixels, magnified, as natural images are."""
        coarse = torch.rand(n, 3, 8, 8, generator=stream("bench", "images", n))
        fine = nn.functional.interpolate(coarse, size=self.pixels, mode="bilinear")
        return fine.mul(255).round().byte()

    def labels(self, n: int) -> Labels:
        return torch.randint(self.classes, (n,), generator=stream("bench", "labels", n))

    def pool(self, n: int, **options: Any) -> Pool:
        return Pool(self.images(n), self.labels(n), **{"store": self.store, **options})


@torch.no_grad()
def settle(net: nn.Module, images: Images8) -> None:
    """Batch norms take on the statistics of the data, as they would early in training."""
    norms = [module for module in net.modules() if isinstance(module, nn.BatchNorm2d)]
    before = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 1.0  # the statistics of the last batch alone
    net.train()(as_float(images))
    for norm, momentum in zip(norms, before, strict=True):
        norm.momentum = momentum
    net.eval()


def at_size(subject: Subject, n: int) -> Subject:
    """The same step of each sample where only ``n`` images are at hand, fewer than a batch.

    >>> few = at_size(SUBJECTS["wideresnet"](), 32)
    >>> few.ascent.lr_max / few.ascent.batch == 20 / 128, few.method["block"]
    (True, 32)
    """
    batch = min(n, subject.method["units_batch"])
    method = subject.method | {
        "step_size": subject.method["step_size"] * batch / subject.method["units_batch"],
        "units_batch": batch,
        "block": min(n, subject.method["block"]),
    }
    return replace(subject, method=method, batch=min(n, subject.batch))


def _digits() -> Subject:
    recipe = load_recipe(DIGITS)
    return Subject(
        lenet, 32, 10, recipe.method, recipe.descent, recipe.pool.store, recipe.plan.batch_size,
        pictures=False,
    )  # fmt: skip


def _cifar() -> Subject:
    """The supplement's settings for WideResNet on CIFAR-10, batch 128 of the published script."""
    method = _method(step_size=20.0, gamma=1.0, beta=10.0, units_batch=128)
    descent = Descent(name="sgd", lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4)
    return Subject(wideresnet, 32, 10, method, descent, "uint8", 128, pictures=True)


def _pacs() -> Subject:
    """The supplement's settings for AlexNet on PACS, but 15 steps of its 50: a step is a step."""
    method = _method(step_size=50.0, gamma=10.0, beta=1.0, units_batch=32)
    descent = Descent(name="sgd", lr=1e-3, momentum=0.9, weight_decay=5e-5)
    return Subject(alexnet, 224, 7, method, descent, "uint8", 32, pictures=False)


def _method(**settings: Any) -> dict[str, Any]:
    fixed = {"name": "meada", "steps": 15, "units": "official", "grow": "pool"}
    return {**fixed, "block": settings["units_batch"], **settings}


SUBJECTS: dict[str, Callable[[], Subject]] = {
    "lenet": _digits,
    "wideresnet": _cifar,
    "alexnet": _pacs,
}
