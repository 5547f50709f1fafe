"""All settings of a ``robustify`` run: how they are chosen from the data and fitted to the time budget."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from meada.corruptions.batch import SIDES
from meada.methods.parts.descent import Descent
from meada.settings import Settings

SMALL = 64  # pixels: up to here a network is trained from scratch
LITE = "efficientnet_lite0"
# Designed for 32x32: LeNet accepts no other size, and the others are slow on larger pictures.
SMALL_NETWORKS = (
    "lenet", "allconv", "densenet", "densenet40", "wideresnet", "wideresnet16_1", "resnext", "resnext29_4x32",
)  # fmt: skip
CANDIDATES = 6  # models that are scored: plain, plain_repeat, probe, hardened, averaged, interpolated
ROWS = 15 + 4  # approximate number of corruptions and validation shifts
SLACK = 0.97  # share of the budget that is planned for; with 0.93, runs took 84 to 92 % of their budget
FEWEST_STEPS, FEWEST_PICTURES = 20, 40
CLIP = 5.0  # decision 87
RATE = 0.003 / 32  # of hardened, per picture of a batch: at 0.003 batches of 8 broke the network (decision 78)
HELD_OUT, MOST_HELD_OUT = 0.2, 2000  # share and maximum number of pictures; more take time and add little precision
MOST_PROBED, FEWEST_PROBED = 10_000, 2000  # training pictures; a head needs no more, and features take time
MINUTES_PER_PICTURE, MOST_MINUTES = 15 / 1000, 60  # default budget


class Plan(Settings):
    """What is trained, for how long, and how it is scored; once saved, only settings in ``budget.OPEN`` can change."""

    network: str = Field(description="a pretrained EfficientNet-Lite0 above 64 pixels, else a small network")
    weights: str = Field("", description="file of initial weights; empty: pretrained ones if there are any, or random")
    pretrained: bool = Field(description="starts from trained weights; adds probe, frozen batch norm and interpolation")
    held_out: float = Field(0.2, gt=0, lt=1, description="share of the pictures held out from training, at most 2,000")
    side: int = Field(ge=SIDES[0], le=SIDES[-1], description="every picture is resized to this width and height")
    batch_size: int = Field(32, ge=1, description="pictures in a gradient step")
    probe: int = Field(0, ge=0, description="number of training pictures that the probe is fitted on; 0: all")
    steps: int = Field(ge=1, description="gradient steps of each of plain, plain_repeat and hardened")
    rates: list[Annotated[float, Field(gt=0)]] = Field(
        min_length=1, description="learning rates tried for plain; the best on held-out pictures is used"
    )
    trial_steps: int = Field(ge=0, description="gradient steps per learning rate tried")
    hardened_rate: float = Field(gt=0, description="learning rate of hardened, proportional to the batch size")
    clip: float = Field(CLIP, gt=0, description="maximum gradient norm of hardened, against divergence at the start")
    optimiser: Literal["sgd", "adam"] = Field(description="sgd (Nesterov 0.9) or adam; cosine schedule")
    hardened_steps: int = Field(0, ge=0, description="gradient steps of hardened if time is short; 0: as many as plain")
    views: int = Field(1, ge=1, description="transformed views drawn per picture; one of them is trained on")
    hardness: float = Field(0.0, ge=0, le=1, description="0 chooses a random view, 1 the hardest")
    average_from: float = Field(ge=0, lt=1, description="share of the steps after which weights are averaged")
    interpolation: list[Annotated[float, Field(ge=0, lt=1)]] = Field(
        description="positions tried between pretrained and averaged weights"
    )
    shifted: int = Field(ge=1, description="held-out pictures under each corruption and each validation shift")
    severities: list[Annotated[int, Field(ge=1, le=5)]] = Field(
        [3, 5], min_length=1, description="severities (1 to 5) of the corruptions, alternating over pictures"
    )
    test: int = Field(0, ge=0, description="maximum number of pictures per test folder; 0: all")

    def steps_of(self, name: str) -> int:
        return (self.hardened_steps or self.steps) if name == "hardened" else self.steps

    def descent(self, rate: float) -> Descent:
        if self.optimiser == "adam":
            return Descent(name="adam", lr=rate, weight_decay=1e-5, schedule="cosine")
        return Descent(name="sgd", lr=rate, momentum=0.9, nesterov=True, weight_decay=1e-4, schedule="cosine")


@dataclass(frozen=True)
class Facts:
    """What the default settings depend on."""

    train: int
    held_out: int
    side: int  # the shorter one of a typical picture, in pixels
    network: str = ""
    weights: str = ""
    asked_side: int | None = None


def plan_for(facts: Facts, changes: Mapping[str, Any] | None = None) -> Plan:
    """The default plan, without a time limit.

    >>> plan = plan_for(Facts(train=800, held_out=200, side=227))
    >>> plan.network, plan.side, plan.pretrained, plan.steps
    ('efficientnet_lite0', 128, True, 300)
    >>> plan_for(Facts(train=800, held_out=200, side=32)).pretrained
    False
    """
    side = _side(facts)
    network = facts.network or (LITE if side > SMALL else "wideresnet16_1")
    pretrained = bool(facts.weights) or network.startswith("efficientnet_lite")
    batch = 32 if facts.train >= 64 else 8
    passes, low, high = (12, 100, 3000) if pretrained else (60, 200, 6000)
    steps = min(max(-(-passes * facts.train // batch), low), high)
    chosen = dict(
        network=network, weights=facts.weights, pretrained=pretrained, side=side, batch_size=batch, steps=steps,
        rates=[0.003, 0.01, 0.03, 0.1] if pretrained else [0.001], trial_steps=steps // 5 if pretrained else 0,
        hardened_rate=0.001, optimiser="sgd" if pretrained else "adam",
        average_from=0.3 if pretrained else 0.75, interpolation=[0.25, 0.5, 0.75] if pretrained else [],
        held_out=min(HELD_OUT, MOST_HELD_OUT / max(facts.train + facts.held_out, 1)),
        probe=MOST_PROBED if pretrained and facts.train > MOST_PROBED else 0,
        shifted=min(facts.held_out, 300 if side > SMALL else 500),
    )  # fmt: skip
    plan = Plan(**{**chosen, **(changes or {})})
    if not plan.pretrained or "hardened_rate" in (changes or {}):
        return plan
    return plan.model_copy(update={"hardened_rate": RATE * plan.batch_size})


def _side(facts: Facts) -> int:
    if facts.asked_side is not None:
        return facts.asked_side
    if facts.network in SMALL_NETWORKS or (not facts.weights and facts.side <= 40):
        return 32
    if not facts.weights and facts.side <= SMALL:
        return SMALL
    return 224 if ":" in facts.network or facts.weights else 128


@dataclass(frozen=True)
class Costs:
    """Seconds, measured on this machine with this network."""

    plain: float  # one step of ordinary fine-tuning
    hardened: float  # one step on clean pictures and views
    look: float  # predicting one picture
    corrupt: float  # corrupting one picture, averaged over the fifteen corruptions


def estimate(plan: Plan, costs: Costs, facts: Facts, tests: Collection[int] = ()) -> dict[str, float]:
    """Expected seconds of each stage.

    >>> plan = plan_for(Facts(320, 80, 32), {"steps": 100, "shifted": 10})
    >>> costs = Costs(plain=0.1, hardened=0.2, look=0.0, corrupt=0.0)
    >>> {k: round(v, 6) for k, v in estimate(plan, costs, Facts(320, 80, 32)).items() if v}
    {'plain': 10.0, 'plain_repeat': 10.0, 'hardened': 20.0}
    """
    looks = lambda n: n * costs.look
    tested = sum(min(n, plan.test or n) for n in tests)
    rows = ROWS * plan.shifted
    return {
        "probe": looks(2 * min(facts.train, plan.probe or facts.train) + facts.held_out) if plan.pretrained else 0.0,
        "families": looks(2 * facts.held_out) if plan.pretrained else 0.0,
        "rate": len(plan.rates) * (plan.trial_steps * costs.plain + looks(facts.held_out)) if plan.trial_steps else 0.0,
        "plain": plan.steps * costs.plain,
        "plain_repeat": plan.steps * costs.plain,
        "hardened": plan.steps_of("hardened") * costs.hardened,
        "interpolated": looks(len(plan.interpolation) * (facts.held_out + 4 * plan.shifted)),
        "score": looks(CANDIDATES * (facts.held_out + tested + rows)) + costs.corrupt * rows,
    }


def fit(
    plan: Plan, costs: Costs, facts: Facts, tests: Collection[int], *, seconds: float, pinned: Collection[str] = ()
) -> Plan:
    """The largest plan that fits into ``seconds``, or the smallest possible one; ``pinned`` keys do not change."""
    takes = lambda p: sum(estimate(p, costs, facts, tests).values())
    return largest(lambda s: shrunk(plan, s, tests, pinned), lambda p: takes(p) <= SLACK * seconds)


def largest(make: Callable[[float], Plan], fits: Callable[[Plan], bool]) -> Plan:
    """The plan for the largest share that fits, found by bisection; for share 0 if none fits."""
    low, high = 0.0, 1.0
    if fits(make(high)):
        return make(high)
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(make(middle)) else (low, middle)
    return make(low)


def shrunk(plan: Plan, s: float, tests: Collection[int], pinned: Collection[str] = ()) -> Plan:
    """A plan of about ``s`` times the cost: fewer steps and, to a lesser degree, fewer pictures to score."""
    steps = max(round(plan.steps * s), min(FEWEST_STEPS, plan.steps))
    largest = plan.test or max(tests, default=0)
    less = {
        "probe": max(round(plan.probe * s), min(FEWEST_PROBED, plan.probe)),
        "steps": steps,
        "trial_steps": round(steps * plan.trial_steps / plan.steps),
        "shifted": max(round(plan.shifted * s**0.5), min(FEWEST_PICTURES, plan.shifted)),
        "test": max(round(largest * s**0.5), min(100, largest)) if s < 1 else plan.test,
    }
    return plan.model_copy(update={k: v for k, v in less.items() if k not in pinned})


def default_seconds(pictures: int) -> float:
    """Default time budget for this number of pictures.

    >>> default_seconds(1000) / 60, default_seconds(100) / 60, default_seconds(50_000) / 60
    (15.0, 5.0, 60.0)
    """
    return 60.0 * min(max(MINUTES_PER_PICTURE * pictures, 5.0), MOST_MINUTES)


def duration(seconds: float) -> str:
    """
    >>> duration(42.0), duration(160.0), duration(7300.0)
    ('42 s', '3 min', '2 h 2 min')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
