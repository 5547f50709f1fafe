"""A network and settings so small that every case of the suite takes a moment."""

from collections import OrderedDict

import pytest
from benchmarks.subjects import Subject
from torch import nn

from meada.lookup import Trusted
from meada.networks.normalise import Normalise
from meada.runs.recipe import resolve

DATA = {
    "name": "digits", "train": 10_000, "validation": 5_000, "targets": ["svhn", "mnist_m", "usps"],
}  # fmt: skip
METHOD = {
    "name": "meada", "beta": 2.0, "gamma": 1.0, "step_size": 1.0, "steps": 3, "units": "official",
    "units_batch": 4, "grow": "pool", "block": 8,
}  # fmt: skip


def small(num_classes: int = 10) -> nn.Sequential:
    return nn.Sequential(
        OrderedDict(
            normalise=Normalise((0.5, 0.4, 0.3), (0.5, 0.25, 0.2)),
            conv=nn.Conv2d(3, 6, 3, stride=2, padding=1),
            bn=nn.BatchNorm2d(6),
            act=nn.Softplus(),
            flatten=nn.Flatten(),
            classifier=nn.Sequential(nn.Linear(6 * 16, 12), nn.Tanh(), nn.Linear(12, num_classes)),
        )
    )


def plain(num_classes: int = 10) -> nn.Sequential:
    return nn.Sequential(*list(small(num_classes))[1:])


@pytest.fixture(params=["arrays", "pictures"])
def subject(request: pytest.FixtureRequest) -> Subject:
    """Both ways in which the published code holds its data."""
    pictures = request.param == "pictures"
    name = Trusted(f"{__file__}:{'small' if pictures else 'plain'}")
    recipe = resolve({
        "name": "bench", "data": DATA, "network": {"name": name}, "method": METHOD,
        "descent": {"name": "sgd", "lr": 0.01, "momentum": 0.9}, "plan": {"batch_size": 4},
        "pool": {"store": "uint8" if pictures else "float32"},
        "augment": {"name": "flip_crop"} if pictures else {},
        "evaluation": {"subset": 20, "crafted": 10},
    })  # fmt: skip
    return Subject(recipe, 8, 5, pictures=pictures)
