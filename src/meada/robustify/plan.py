"""The arguments of ``robustify``, and the plan: all settings of a run, chosen from the data and the arguments."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from meada.corruptions.batch import SIDES
from meada.errors import MeadaError, check_count, check_numbers
from meada.methods.parts.descent import Descent
from meada.runs.functions import find
from meada.settings import Settings

SMALL = 64  # pixels: up to here a network is trained from scratch
LITE = "efficientnet_lite0"
# Designed for 32x32: LeNet accepts no other size, and the others are slow on larger pictures.
SMALL_NETWORKS = (
    "lenet", "allconv", "densenet", "densenet40", "wideresnet", "wideresnet16_1", "resnext", "resnext29_4x32",
)  # fmt: skip
CLIP = 5.0  # decision 87
FEWEST_TRIAL = 40  # steps of a trial of a learning rate; shorter ones favour rates that are too high (decision 78)
RATE = 0.003 / 32  # of hardened, per picture of a batch: at 0.003 batches of 8 broke the network (decision 78)
HELD_OUT, MOST_HELD_OUT = 0.2, 2000  # share and maximum number of pictures; more take time and add little precision
MOST_PROBED = 10_000  # training pictures; a head needs no more, and features take time
MINUTES_PER_PICTURE, MOST_MINUTES = 15 / 1000, 60  # default budget


@dataclass(frozen=True)
class Request:
    """Arguments with absolute paths: saved with the plan, and compared when the folder is resumed."""

    data: str  # a folder or a CSV file
    tests: tuple[str, ...] = ()
    network: str = ""  # empty: chosen by the size of the pictures
    weights: str = ""
    model: str = ""  # an existing model to compare with
    minutes: float | None = None
    seed: int = 0
    side: int | None = None
    group: str = ""  # CSV column or regular expression: a group is never divided between training and held-out
    changes: tuple[str, ...] = ()  # settings, key=value

    def check(self) -> None:
        if self.side is not None and self.side not in SIDES:
            raise MeadaError(f"--side must be from {SIDES[0]} to {SIDES[-1]}, got {self.side}")
        check_numbers(**{"--minutes": 1.0 if self.minutes is None else self.minutes})
        if self.minutes is not None and not self.minutes > 0:
            raise MeadaError(f"--minutes must be greater than 0, got {self.minutes:g}")
        check_count("--seed", self.seed, least=0)
        if self.weights and not self.network:
            raise MeadaError("--weights must come with the --network that they belong to, got no --network")
        if self.weights and not Path(self.weights).is_file():
            raise MeadaError(f"--weights must be a file, got {self.weights}")
        if self.model and not Path(self.model).exists():
            raise MeadaError(f"--model must be a folder or a file of meada, got {self.model}")
        if self.network:
            find("network", self.network, trust=[self.network])

    def same_as(self, held: object, where: Path) -> None:
        """Refuse to resume a folder with other arguments."""
        before = held if isinstance(held, dict) else {}
        for name, now in json.loads(json.dumps(asdict(self))).items():
            if before.get(name) != now:
                option = {"tests": "--test", "changes": "--set"}.get(name, f"--{name}")
                raise MeadaError(
                    f"{option} must be {before.get(name)!r} to resume {where}, got {now!r}: "
                    "repeat the same command, or give another --out to start again"
                )


class Plan(Settings):
    """What is trained, for how long, and how it is scored; once saved, only settings in ``budget.OPEN`` can change."""

    network: str = Field(description="a pretrained EfficientNet-Lite0 above 64 pixels, else a small network")
    weights: str = Field("", description="file of initial weights; empty: those of ImageNet for EfficientNet-Lite")
    pretrained: bool = Field(description="starts from trained weights; adds probe, frozen batch norm and interpolation")
    held_out: float = Field(0.2, gt=0, lt=1, description="share of the pictures held out from training, at most 2,000")
    side: int = Field(ge=SIDES[0], le=SIDES[-1], description="every picture is resized to this width and height")
    batch_size: int = Field(32, ge=1, description="batch size")
    probe: int = Field(0, ge=0, description="number of training pictures that the probe is fitted on; 0: all")
    steps: int = Field(ge=1, description="gradient steps of each of plain, plain_repeat and hardened")
    rates: list[Annotated[float, Field(gt=0)]] = Field(
        min_length=1,
        description="learning rates tried for plain; without trials the first, or with very few steps the highest",
    )
    trial_steps: int = Field(ge=0, description="gradient steps per learning rate tried")
    hardened_rate: float = Field(gt=0, description="learning rate of hardened, proportional to the batch size")
    clip: float = Field(
        CLIP, gt=0, description="maximum gradient norm in fine-tuning, to prevent divergence at the start"
    )
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


def plan_for(
    train: int, held_out: int, pixels: int, request: Request, changes: Mapping[str, Any] | None = None
) -> Plan:
    """The default plan, without a time limit; ``pixels`` is the shorter side of a typical picture."""
    side = _side(pixels, request)
    network = request.network or (LITE if side > SMALL else "wideresnet16_1")
    pretrained = bool(request.weights) or network.startswith("efficientnet_lite")
    batch = 32 if train >= 64 else 8
    passes, low, high = (12, 100, 3000) if pretrained else (60, 200, 6000)
    steps = min(max(-(-passes * train // batch), low), high)
    chosen = dict(
        network=network, weights=request.weights, pretrained=pretrained, side=side, batch_size=batch, steps=steps,
        rates=[0.01, 0.003, 0.03] if pretrained else [0.001], trial_steps=trial_length(steps) if pretrained else 0,
        hardened_rate=0.001, optimiser="sgd" if pretrained else "adam",
        average_from=0.3 if pretrained else 0.75, interpolation=[0.25, 0.5, 0.75] if pretrained else [],
        held_out=min(HELD_OUT, MOST_HELD_OUT / max(train + held_out, 1)),
        probe=MOST_PROBED if pretrained and train > MOST_PROBED else 0,
        shifted=min(held_out, 300 if side > SMALL else 500),
    )  # fmt: skip
    plan = Plan(**{**chosen, **(changes or {})})
    if not plan.pretrained or "hardened_rate" in (changes or {}):
        return plan
    return plan.model_copy(update={"hardened_rate": RATE * plan.batch_size})


def _side(pixels: int, request: Request) -> int:
    if request.side is not None:
        return request.side
    if request.network in SMALL_NETWORKS or (not request.weights and pixels <= 40):
        return 32
    if not request.weights and pixels <= SMALL:
        return SMALL
    return 224 if ":" in request.network or request.weights else 128


def trial_length(steps: int) -> int:
    """Steps of a trial of a learning rate for a training of ``steps``; 0 if they are too few for trials.

    >>> trial_length(400), trial_length(100), trial_length(60)
    (100, 40, 0)
    """
    return max(steps // 4, FEWEST_TRIAL) if steps >= 2 * FEWEST_TRIAL else 0


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
