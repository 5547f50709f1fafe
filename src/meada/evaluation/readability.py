"""Did a round go too far? A network that took no part in making its samples reads them.

The network that the samples were made against is no judge: that they fool it is their purpose.
"""

from collections.abc import Mapping
from typing import Any

from scipy.stats import binom
from torch import Tensor, nn

from meada.errors import MeadaError
from meada.evaluation.score import predict, refuse_non_finite
from meada.types import Labels

CONFIDENCE = 0.99  # a reader that guesses stays below the limit this often


def chance_limit(n: int, classes: int) -> int:
    """So many of n right answers are still what guessing among the classes gives.

    >>> chance_limit(256, 10)  # of 25.6 on average
    37
    """
    return int(binom.ppf(CONFIDENCE, n, 1 / classes))


def judge(net: nn.Module, gallery: Mapping[str, Tensor], classes: int) -> list[dict[str, Any]]:
    """What ``net`` makes of the samples that each round left in the run's gallery."""
    numbers = sorted(
        int(name.removeprefix("round-").removesuffix(".judged")) for name in gallery if name.endswith(".judged")
    )
    if not numbers:
        raise MeadaError("the run's gallery holds no samples to judge: no round has ended")
    return [
        _verdict(
            net, number, classes, *(gallery[f"round-{number}.{name}"] for name in
            ("judged_source", "judged", "judged_label"))
        )
        for number in numbers
    ]  # fmt: skip


def _verdict(net: nn.Module, number: int, classes: int, source: Tensor, made: Tensor, labels: Labels) -> dict[str, Any]:
    before = _right(net, source, labels, f"the sources of round {number}")
    after = _right(net, made, labels, f"the samples of round {number}")
    n, limit = len(labels), chance_limit(len(labels), classes)
    return {
        "round": number,
        "n": n,
        "source": 100 * before / n,
        "adversarial": 100 * after / n,
        "chance": 100 / classes,
        "limit": 100 * limit / n,
        "warnings": _warnings(number, n, before, after, limit),
    }


def _right(net: nn.Module, images: Tensor, labels: Labels, name: str) -> int:
    logits = predict(net, images)
    refuse_non_finite(logits, name)
    return int((logits.argmax(-1) == labels).sum())


def _warnings(number: int, n: int, before: int, after: int, limit: int) -> list[str]:
    if before <= limit:
        return [f"the judge reads even the source of round {number} at chance: it cannot judge"]
    if after <= limit:
        return [
            f"round {number} went too far: the judge reads {after} of {n} of its samples rightly, "
            f"no better than chance (up to {limit}), and {before} of their sources; lower "
            "step_size, steps or beta, or raise gamma"
        ]
    return []
