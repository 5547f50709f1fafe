"""Which settings fit somebody's pictures: by their size and number, each with its reason."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from meada.methods import METHODS


class Setting(NamedTuple):
    value: Any
    reason: str


Settings = dict[str, Setting]  # by the recipe's key, such as plan.total_steps

# Built for 32x32; LeNet takes no other size, and the others are wasteful on a larger one.
SMALL_NETWORKS = (
    "lenet", "allconv", "densenet", "densenet40", "wideresnet", "wideresnet16_1", "resnext",
    "resnext29_4x32",
)  # fmt: skip
SMALL = 64  # pixels: up to here pictures are treated as the paper treats CIFAR, above as PACS
HALF_RANGE = 0.25  # sigma**2 of the published code's normalisation on CIFAR


@dataclass(frozen=True)
class Facts:
    """What the settings depend on."""

    images: int  # to learn from
    side: int  # the shorter one of a typical picture, in pixels
    network: str = ""  # empty: none was asked for
    weights: bool = False  # it starts from trained weights
    normalises: bool = True  # it has a meada.networks.normalise.Normalise layer
    method: str = "meada"
    asked_side: int | None = None


def plan_for(facts: Facts) -> Settings:
    """The settings of a run; ERM's are the same but for the method.

    >>> plan = plan_for(Facts(images=540, side=227, network="alexnet", weights=True))
    >>> plan["data.side"].value, plan["plan.total_steps"].value, plan["plan.rounds"].value
    (224, 400, 1)
    >>> plan_for(Facts(images=5000, side=28))["network.name"].value
    'wideresnet16_1'
    """
    side = _side(facts)
    network = facts.network or ("wideresnet16_1" if side.value <= SMALL else "resnet18")
    chosen = "as asked" if facts.network else f"what {side.value}x{side.value} and 2 cores allow"
    return {
        "data.side": side,
        "network.name": Setting(network, chosen),
        **_lengths(facts, side.value),
        **_descent(facts),
        **_ascent(facts, side.value),
        "pool.store": Setting("uint8", "pictures have 8 bits"),
        "evaluation.subset": Setting(200, "pictures of each test that score a candidate"),
        "evaluation.crafted": Setting(100, "held-out pictures under each crafted shift"),
        "robustness.images": Setting(200 if side.value <= SMALL else 100, "held-out pictures under each corruption"),
        "robustness.severities": Setting([3, 5], "a middle and the highest of five"),
    }


def _side(facts: Facts) -> Setting:
    if facts.asked_side is not None:
        return Setting(facts.asked_side, "as asked")
    typical = f"pictures of {facts.side} pixels"
    if facts.network in SMALL_NETWORKS:
        return Setting(32, f"{facts.network} is made for it")
    if facts.side <= 40 and not facts.weights:
        return Setting(32, typical)
    if facts.side <= 96 and not facts.weights:
        return Setting(64, typical)
    foreign = facts.network and ":" in facts.network
    if facts.weights or foreign:
        return Setting(224, "what trained weights and other people's networks expect")
    return Setting(128, f"{typical}, learnt from scratch: 224 would take three times as long")


def _lengths(facts: Facts, side: int) -> Settings:
    batch = 32 if facts.images >= 64 else 8
    passes = 20 if facts.weights else 60
    total = min(max(100 * -(-passes * facts.images // batch // 100), 200), 4000)
    rounds = 2 if side <= SMALL else 1
    least = total // 8 if facts.weights else total // (rounds + 2)
    return {
        "plan.batch_size": Setting(batch, f"{facts.images:,} pictures to learn from"),
        "plan.total_steps": Setting(total, f"T: about {passes} passes, from 200 to 4,000 steps"),
        "plan.rounds": Setting(rounds, "K: as the paper's CIFAR (2) or PACS (1)"),
        "plan.min_steps": Setting(least, "T_min: the network must have learnt something before it is climbed on"),
        "evaluation.every": Setting(max(total // 4, 1), "four candidates"),
    }


def _descent(facts: Facts) -> Settings:
    if facts.weights:
        return {
            "descent.name": Setting("sgd", "as the paper's PACS"),
            "descent.lr": Setting(0.005, "fine-tuning in few steps; the paper's 45,000 take 0.001"),
            "descent.momentum": Setting(0.9, "as the paper's PACS"),
            "descent.weight_decay": Setting(5e-5, "as the paper's PACS"),
            "descent.schedule": Setting("cosine", "as the paper's PACS"),
        }
    return {
        "descent.name": Setting("adam", "from scratch"),
        "descent.lr": Setting(1e-3, "from scratch"),
        "descent.weight_decay": Setting(1e-5, "from scratch"),
        "descent.schedule": Setting("cosine", "as the paper's CIFAR and PACS"),
    }


def _ascent(facts: Facts, side: int) -> Settings:
    """As far as the method has a use for them."""
    wanted = _as_cifar(facts.normalises) if side <= SMALL else _as_pacs()
    wanted["grow"] = Setting("pool", "Algorithm 1: every sample of D")
    taken = inspect.signature(METHODS[facts.method]).parameters
    if not {"step_size", "gamma", "units"} <= taken.keys():
        return {}
    if facts.method == "ada":
        wanted.pop("beta")
    return {f"method.{name}": one for name, one in wanted.items() if name in taken}


def _as_cifar(normalises: bool) -> Settings:
    where = "the paper's CIFAR"
    how = where if normalises else f"{where}, for a network whose normalisation is unknown"
    return {
        "steps": Setting(15, f"T_max: {where}"),
        "step_size": Setting(20.0 if normalises else 20.0 * HALF_RANGE, f"eta: {how}"),
        "gamma": Setting(1.0, where),
        "beta": Setting(10.0, where),
        "units": Setting("official", "batch means, cost averaged over z"),
        "units_batch": Setting(128, where),
        "block": Setting(128, "samples climbed at once"),
    }


def _as_pacs() -> Settings:
    """Steps of a fixed length: after few steps of training, raw gradients are those of a network

    that is nearly sure of half of its pictures and leaves the others far behind (decision 40).
    """
    return {
        "steps": Setting(10, "T_max: 50 in the paper's PACS"),
        "step_size": Setting(0.0005, "eta: an eighth of an 8-bit level, in the root mean square"),
        "gamma": Setting(10.0, "the paper's PACS"),
        "beta": Setting(1.0, "the paper's PACS"),
        "units": Setting("pixels", "steps of a fixed length, whatever the network's scale"),
        "block": Setting(32, "samples climbed at once"),
    }


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """
    >>> nested({"plan.rounds": 1, "plan.batch_size": 8, "seed": 3})
    {'plan': {'rounds': 1, 'batch_size': 8}, 'seed': 3}
    """
    table: dict[str, Any] = {}
    for path, value in values.items():
        *folders, last = path.split(".")
        inner = table
        for name in folders:
            inner = inner.setdefault(name, {})
        inner[last] = value
    return table
