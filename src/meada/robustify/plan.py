"""Every setting of a run of ``robustify``, with its reason, chosen in one place and fitted to the time."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from meada.methods.parts.descent import Descent
from meada.settings import Settings

SMALL = 64  # pixels: up to here a network is trained from scratch
LITE = "efficientnet_lite0"
# Built for 32x32; LeNet takes no other size, and the others are wasteful on a larger one.
SMALL_NETWORKS = (
    "lenet", "allconv", "densenet", "densenet40", "wideresnet", "wideresnet16_1", "resnext", "resnext29_4x32",
)  # fmt: skip
CANDIDATES = 6  # models that are scored: plain, its repetition, probe, hardened, averaged, interpolated
ROWS = 15 + 4  # corruptions and validation shifts that each picture is scored under, about
SLACK = 0.97  # of the budget is planned with: records planned with 0.93 took 84 to 92 % of their time
FEWEST_STEPS, FEWEST_PICTURES = 20, 40
CLIP = 5.0  # decision 87
RATE = 0.003 / 32  # of hardened, per picture of a batch: at 0.003 batches of 8 broke the network (decision 78)
HELD_OUT, MOST_HELD_OUT = 0.2, 2000  # share and number of pictures: more cost time and tell little
MOST_PROBED, FEWEST_PROBED = 10_000, 2000  # training pictures: a head needs no more, and features take time
MINUTES_PER_PICTURE, MOST_MINUTES = 15 / 1000, 60  # where no time is given


class Plan(Settings):
    """What is trained, for how long and how it is judged. Steps never depend on the clock once this is written."""

    network: str = Field(description="a pretrained EfficientNet-Lite0 above 64 pixels, a small network up to there")
    weights: str = Field("", description="the file that the network starts from; empty: its own, or random ones")
    pretrained: bool = Field(description="starts from trained weights: probe, frozen batch norm and interpolation")
    held_out: float = Field(0.2, gt=0, lt=1, description="share of the pictures kept from training, 2,000 at most")
    side: int = Field(description="every picture is resized to this width and height")
    batch_size: int = Field(32, ge=1, description="pictures in a gradient step")
    probe: int = Field(0, ge=0, description="training pictures that the probe is fitted on; 0: all")
    steps: int = Field(ge=1, description="gradient steps of plain, of plain_repeat and of hardened, each")
    rates: list[float] = Field(description="learning rates tried for plain; the best on held-out pictures is taken")
    trial_steps: int = Field(ge=0, description="gradient steps of each try")
    hardened_rate: float = Field(gt=0, description="learning rate of hardened; not tuned; in proportion to the batch")
    clip: float = Field(
        CLIP, gt=0, description="largest gradient norm of hardened; without it the first steps can break it"
    )
    optimiser: str = Field(description="sgd (Nesterov 0.9) from trained weights, adam from scratch; cosine schedule")
    hardened_steps: int = Field(0, ge=0, description="gradient steps of hardened where time got short; 0: as of plain")
    views: int = Field(1, ge=1, description="transformed views drawn per picture; the hard one is trained on")
    hardness: float = Field(0.0, ge=0, le=1, description="0 takes a random view, 1 the hardest")
    average_from: float = Field(ge=0, lt=1, description="share of the steps after which weights are averaged")
    interpolation: list[float] = Field(description="positions tried between pretrained and averaged weights")
    shifted: int = Field(ge=1, description="held-out pictures under each corruption and each validation shift")
    severities: list[int] = Field([3, 5], description="of 1 to 5; pictures take turns")
    test: int = Field(0, ge=0, description="pictures of each test folder at most; 0: all")

    def steps_of(self, name: str) -> int:
        return (self.hardened_steps or self.steps) if name == "hardened" else self.steps

    def descent(self, rate: float) -> Descent:
        if self.optimiser == "adam":
            return Descent(name="adam", lr=rate, weight_decay=1e-5, schedule="cosine")
        return Descent(name="sgd", lr=rate, momentum=0.9, nesterov=True, weight_decay=1e-4, schedule="cosine")


@dataclass(frozen=True)
class Facts:
    """What the settings depend on."""

    train: int
    held_out: int
    side: int  # the shorter one of a typical picture, in pixels
    network: str = ""
    weights: str = ""
    asked_side: int | None = None


def plan_for(facts: Facts, changes: Mapping[str, Any] | None = None) -> Plan:
    """The plan that time does not limit.

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
    """Seconds, each measured on this machine with this network."""

    plain: float  # a step of ordinary fine-tuning
    hardened: float  # a step on clean pictures and views
    look: float  # reading one picture
    corrupt: float  # corrupting one picture, a mean over the fifteen


def estimate(plan: Plan, costs: Costs, facts: Facts, tests: Collection[int] = ()) -> dict[str, float]:
    """Seconds by stage.

    >>> plan = plan_for(Facts(320, 80, 32), {"steps": 100, "shifted": 10})
    >>> costs = Costs(plain=0.1, hardened=0.2, look=0.0, corrupt=0.0)
    >>> {k: round(v, 6) for k, v in estimate(plan, costs, Facts(320, 80, 32)).items() if v}
    {'plain': 10.0, 'plain_repeat': 10.0, 'hardened': 20.0}
    """
    looks = lambda n: n * costs.look
    met = sum(min(n, plan.test or n) for n in tests)
    rows = ROWS * plan.shifted
    return {
        "probe": looks(2 * min(facts.train, plan.probe or facts.train) + facts.held_out) if plan.pretrained else 0.0,
        "families": looks(2 * facts.held_out) if plan.pretrained else 0.0,
        "rate": len(plan.rates) * (plan.trial_steps * costs.plain + looks(facts.held_out)) if plan.trial_steps else 0.0,
        "plain": plan.steps * costs.plain,
        "plain_repeat": plan.steps * costs.plain,
        "hardened": plan.steps_of("hardened") * costs.hardened,
        "interpolated": looks(len(plan.interpolation) * (facts.held_out + 4 * plan.shifted)),
        "score": looks(CANDIDATES * (facts.held_out + met + rows)) + costs.corrupt * rows,
    }


def fit(
    plan: Plan, costs: Costs, facts: Facts, tests: Collection[int], *, seconds: float, pinned: Collection[str] = ()
) -> Plan:
    """The largest plan that fits into ``seconds``, or the smallest there is; ``pinned`` keys stay."""
    takes = lambda p: sum(estimate(p, costs, facts, tests).values())
    return largest(lambda s: shrunk(plan, s, tests, pinned), lambda p: takes(p) <= SLACK * seconds)


def largest(make: Callable[[float], Plan], fits: Callable[[Plan], bool]) -> Plan:
    """The plan of the largest share that fits, found by bisection; of share 0 if none does."""
    low, high = 0.0, 1.0
    if fits(make(high)):
        return make(high)
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(make(middle)) else (low, middle)
    return make(low)


def shrunk(plan: Plan, s: float, tests: Collection[int], pinned: Collection[str] = ()) -> Plan:
    """About a share ``s`` of the plan's cost: fewer steps and, more slowly, fewer pictures to judge by."""
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
    """Where no time is given.

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
