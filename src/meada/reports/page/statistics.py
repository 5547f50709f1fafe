"""What can be said of a mean and of a difference: intervals by the bootstrap, p-values by Holm."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy import stats

from meada.evaluation.statistics import LEVEL, Interval, t_interval

DRAWS = 2_000
FEW = 5  # below so many seeds, the spread over seeds is itself hardly known
CHUNK = 100  # resamples at a time: 100 x 26,032 images are 10 MB

Correct = Float[np.ndarray, "seeds images"]  # 1 where the image was read rightly
Replicates = Float[np.ndarray, " draws"]


@dataclass(frozen=True)
class Difference:
    """Of two means in points; ``p`` is two-sided, for a true difference of zero."""

    value: float
    interval: Interval | None
    p: float | None
    seeds: int


def image_means(correct: Correct, draws: int = DRAWS) -> Float[np.ndarray, "draws seeds"]:
    """Each seed's accuracy on the same resampled images.

    Whoever asks with as many images gets the same resamples: that is what pairs two methods, and
    corruptions of the same photographs.
    """
    n = correct.shape[1]
    return np.concatenate([counts @ correct.T / n for counts in _image_counts(n, draws)])


def _image_counts(n: int, draws: int) -> Iterator[Float[np.ndarray, "some images"]]:
    rng = np.random.default_rng(1)
    for start in range(0, draws, CHUNK):
        chosen = rng.integers(n, size=(min(CHUNK, draws - start), n))
        yield np.stack([np.bincount(row, minlength=n) for row in chosen]).astype(np.float64)


def seed_weights(seeds: int, draws: int = DRAWS) -> Float[np.ndarray, "draws seeds"]:
    """How much each seed counts in each resample of the seeds; rows sum to one."""
    rng = np.random.default_rng(2)
    return rng.multinomial(seeds, np.full(seeds, 1 / seeds), size=draws) / seeds


def percentile_interval(replicates: Replicates, how: str) -> Interval:
    low, high = np.quantile(replicates, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(low), float(high), how)


def bootstrap_p(replicates: Replicates) -> float:
    """Twice the smaller side's share; one more on each count, so that it is never 0.

    >>> bootstrap_p(np.array([1.0] * 99))  # 2 * (0 + 1) / (99 + 1)
    0.02
    """
    sides = (np.sum(replicates <= 0), np.sum(replicates >= 0))
    return float(min(1.0, 2 * (min(sides) + 1) / (len(replicates) + 1)))


def by_seeds(a: Sequence[float], b: Sequence[float], *, paired: bool) -> Difference:
    """Without predictions image by image: seeds alone, paired where both have the same ones."""
    value, n = float(np.mean(a)) - float(np.mean(b)), min(len(a), len(b))
    if n < 2:
        return Difference(value, None, None, n)
    if paired:
        gaps = [x - y for x, y in zip(a, b, strict=True)]
        interval = t_interval(gaps)
        flat = float(np.ptp(gaps)) == 0  # scipy gives NaN where nothing varies
        p = float(value == 0) if flat else float(stats.ttest_1samp(gaps, 0).pvalue)
        return Difference(value, interval, p, n)
    if float(np.ptp(a)) == float(np.ptp(b)) == 0:
        return Difference(value, Interval(value, value, "t"), float(value == 0), n)
    test = stats.ttest_ind(a, b, equal_var=False)
    bounds = test.confidence_interval(LEVEL)
    return Difference(value, Interval(float(bounds.low), float(bounds.high), "Welch's t"), float(test.pvalue), n)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: each p-value times the number not yet rejected, in order.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    corrected, running = [0.0] * len(p_values), 0.0
    for place, i in enumerate(order):
        running = max(running, min(1.0, (len(p_values) - place) * p_values[i]))
        corrected[i] = running
    return corrected
