r"""Decide which candidate is delivered, with the statistical evidence.

Held-out pictures alone decide, under corruptions and shifts of kinds that no candidate trained on; test folders are
never used. The unit is the picture. Repeating a training changes the model too: a gain over ``plain`` counts only if

    |candidate - mean of both plains| > f max(half-width, 2 sqrt(1.5) max(gap / sqrt(2), s0)),

with the half-width of a paired bootstrap over pictures, the gap between plain and its repetition (sd gap / sqrt(2)) and
s0 the standard deviation between runs that was measured for this size of data (``noise.json``); 1.5 = 1 + 1/2, since
one run is compared with the mean of two. The interval of the bootstrap, widened by f, must exclude zero, too. The
factor f corrects for the number of comparisons (:func:`widening`): the best of several is taken, by two scores.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import NormalDist

import numpy as np

from meada.evaluation.statistics import paired_bootstrap

MAX_CLEAN_LOSS = 1.0  # points of held-out accuracy that the delivered model may lie below the best
ROUNDING = 1e-9  # points: exactly one point or one picture below is still within it
DRAWS = 2000  # resamples of the bootstrap
ONE_TRAINING = ("hardened", "averaged", "interpolated")  # they differ far less than two trainings do
PLAINS = "the mean of two plain fine-tunings"
NOT_DELIVERABLE = ("plain_repeat", "own")  # candidates that are compared and not delivered


@dataclass(frozen=True)
class Gain:
    """Accuracy of a candidate minus the mean of both plain models, in points."""

    mean: float
    low: float
    high: float
    n: int  # pictures
    noise: float  # difference that repeating the same training can make
    factor: float = 1.0  # by which several comparisons widen both

    @property
    def needed(self) -> float:
        """The gain must exceed each of these: half the interval, its side towards zero, and the noise."""
        towards_zero = self.mean - self.low if self.mean > 0 else self.high - self.mean
        return self.factor * max((self.high - self.low) / 2, towards_zero, self.noise)

    @property
    def beyond_noise(self) -> bool:
        return abs(self.mean) > self.needed

    @property
    def better(self) -> bool:
        return self.beyond_noise and self.mean > 0

    @property
    def worse(self) -> bool:
        return self.beyond_noise and self.mean < 0


@dataclass(frozen=True)
class Decision:
    delivered: str
    eligible: tuple[str, ...]  # within MAX_CLEAN_LOSS points of the best held-out accuracy
    gains: dict[str, Gain]
    sentence: str

    def as_json(self) -> dict[str, object]:
        gains = {k: {**asdict(g), "needed": g.needed, "beyond_noise": g.beyond_noise} for k, g in self.gains.items()}
        return {"delivered": self.delivered, "eligible": list(self.eligible), "gains": gains, "verdict": self.sentence}


def difference(a: np.ndarray, b: np.ndarray) -> tuple[float, float, float, int]:
    """Difference of two models on the same pictures, in points: mean, 95 % interval (bootstrap of pictures), n."""
    found = paired_bootstrap(a, b, draws=DRAWS)
    assert found.interval is not None
    return found.value, found.interval.low, found.interval.high, len(a)


def noise_floor(gap: float, s0: float) -> float:
    """
    >>> round(noise_floor(gap=0.0, s0=1.0), 3), round(noise_floor(gap=2.0, s0=1.0), 3)
    (2.449, 3.464)
    """
    return 2 * math.sqrt(1.5) * max(abs(gap) / math.sqrt(2), s0)


def widening(trainings: int) -> float:
    """Width of the interval for the best of several trainings, compared in two ways, relative to that of one (95 %).

    Bonferroni's correction: each of ``2 * trainings`` comparisons may be wrong in its share of 2.5 %.

    >>> round(widening(1), 2), round(widening(2), 2)
    (1.14, 1.27)
    """
    normal = NormalDist()
    return normal.inv_cdf(1 - 0.025 / (2 * max(trainings, 1))) / normal.inv_cdf(0.975)


def run_to_run(train: int, pretrained: bool) -> float:
    """s0: the standard deviation between two plain trainings, in points, of the nearest size that was measured."""
    table = json.loads((Path(__file__).parent / "noise.json").read_text(encoding="utf-8"))
    same_start = [one for one in table["measured"] if one["pretrained"] == pretrained]
    return float(min(same_start, key=lambda one: abs(math.log(one["train"] / max(train, 1))))["sd"])


Correct = Mapping[str, np.ndarray]  # by candidate: one mean correctness per picture


def gains_over_plain(correct: Correct, s0: float, factor: float) -> dict[str, Gain]:
    """The gain of every candidate over the mean of both plain models."""
    plains = [correct[name] for name in ("plain", "plain_repeat")]
    noise = noise_floor(100 * float(plains[0].mean() - plains[1].mean()), s0)
    return {name: Gain(*difference(one, np.mean(plains, 0)), noise, factor) for name, one in correct.items()}


def decide(held_out: Correct, shifted: Correct, s0: float, rows: Sequence[str]) -> Decision:
    """``held_out``: pictures as they are; ``shifted``: a mean over the rule's rows for each picture.

    A candidate beats plain by a gain under shifts beyond noise; or, where plain has hardly learnt the classes, by one
    on pictures as they are, without a loss under shifts beyond noise.
    """
    accuracy = {name: 100 * float(one.mean()) for name, one in held_out.items() if name not in NOT_DELIVERABLE}
    limit = max(accuracy.values()) - max(MAX_CLEAN_LOSS, 100 / len(held_out["plain"]))
    eligible = tuple(name for name in accuracy if accuracy[name] >= limit - ROUNDING)
    trainings = {"hardened" if name in ONE_TRAINING else name for name in eligible if name != "plain"}
    clean, gains = (gains_over_plain(correct, s0, widening(len(trainings))) for correct in (held_out, shifted))
    best = max(eligible, key=lambda name: gains[name].mean)
    shown = gains[best].better or (clean[best].better and not gains[best].worse)
    delivered = best if best != "plain" and shown else "plain"
    return Decision(delivered, eligible, gains, _sentence(delivered, best, gains[best], clean[best], rows))


def _sentence(delivered: str, best: str, gain: Gain, clean: Gain, rows: Sequence[str]) -> str:
    about = f"on {gain.n:,} held-out pictures under {len(rows)} corruptions and shifts that no candidate trained on"
    if delivered != "plain" and gain.better:
        found = (
            f"It is {gain.mean:.1f} points more accurate than {PLAINS} {about} (95 % interval "
            f"{gain.low:+.1f} to {gain.high:+.1f} for these models; repeating a plain fine-tuning can change accuracy "
            f"by up to {gain.noise:.1f}; the best of several candidates must gain more than {gain.needed:.1f})."
        )
    elif delivered != "plain":
        found = (
            f"It is {clean.mean:.1f} points more accurate than {PLAINS} on {clean.n:,} held-out pictures as they are; "
            f"{about}, the difference of {gain.mean:+.1f} points is within noise."
        )
    elif best == "plain":
        found = f"No other candidate that keeps held-out accuracy is more accurate {about}."
    elif gain.worse:
        found = (
            f"Of the other candidates that keep held-out accuracy, {best} is most accurate {about}, "
            f"and it is {-gain.mean:.1f} points less accurate than {PLAINS} there."
        )
    else:
        found = (
            f"{best} differs from {PLAINS} by {gain.mean:+.1f} points {about}; differences of up to {gain.needed:.1f} "
            "points can come from chance and from repeating the training."
        )
    return f"Delivered: {delivered}. {found}"


def smallest_difference(n: int, s0: float, disagree: float = 0.2) -> float:
    """Points that ``n`` pictures can show if two models disagree on a fifth of them.

    >>> round(smallest_difference(200, 0.5), 1)
    6.2
    """
    return max(196 * math.sqrt(disagree / max(n, 1)), noise_floor(0.0, s0))
