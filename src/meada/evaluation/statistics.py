"""Means, confidence intervals and tests, and the rule for when a difference is beyond chance.

Two kinds of comparison are kept separate. Several training runs of each method (seeds) speak of the *methods*, on these
test images: Student's t over seeds. One run of each speaks of *these two models* alone: a bootstrap over images.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from meada.errors import MeadaError

LEVEL = 0.95  # of intervals; a corrected p below 1 - LEVEL is more than chance
DRAWS = 10_000  # resamples: Holm over up to 250 comparisons can still find one
NO_SPREAD = 1e-9  # points: gaps that vary by less than this do not vary (sums of floats)

Correct = Any  # 1 where a picture was classified correctly: (pictures,) or (rows, pictures), a NumPy array or a tensor
Sets = Correct | Mapping[str, Correct]  # several sets of *different* pictures by name, with equal weights in the mean


@dataclass(frozen=True)
class Summary:
    """Mean, sample standard deviation (n - 1) and n; the deviation of one value is unknown."""

    mean: float
    std: float | None
    n: int

    @property
    def error(self) -> float | None:
        """Standard error of the mean."""
        return None if self.std is None else self.std / math.sqrt(self.n)

    def __str__(self) -> str:
        spread = "" if self.std is None else f" ± {self.std:.2f}"
        return f"{self.mean:.2f}{spread} (n={self.n})"


def summarise(values: Sequence[float]) -> Summary:
    """
    >>> str(summarise([1.0, 2.0, 3.0]))
    '2.00 ± 1.00 (n=3)'
    >>> str(summarise([5.0]))
    '5.00 (n=1)'
    """
    n = len(values)
    mean = sum(values) / n
    if n == 1:
        return Summary(mean, None, 1)
    return Summary(mean, math.sqrt(sum((v - mean) ** 2 for v in values) / (n - 1)), n)


@dataclass(frozen=True)
class Interval:
    """A 95 % interval and the method it was computed by."""

    low: float
    high: float
    how: str

    def __str__(self) -> str:
        return f"{self.low:+.2f} to {self.high:+.2f}"


@dataclass(frozen=True)
class Difference:
    """Difference of two accuracies in points; ``p`` is two-sided, for a true difference of zero. None: unknown."""

    value: float
    interval: Interval | None = None
    p: float | None = None
    seeds: int = 1  # pairs of runs, or runs of the smaller group
    about: Literal["methods", "models"] = "models"


@dataclass(frozen=True)
class Verdict:
    """A difference and its p-value, corrected for all comparisons with the same method."""

    difference: Difference
    p: float | None

    @property
    def beyond_chance(self) -> bool:
        return self.p is not None and self.p < 1 - LEVEL

    def __str__(self) -> str:
        """With one run of each method the words are about the two models, never about the methods."""
        if self.p is None:
            return "unknown"
        if self.difference.about == "models":
            return "these two models differ" if self.beyond_chance else "these two models: may be chance"
        return "beyond chance" if self.beyond_chance else "may be chance"


def verdicts(differences: Sequence[Difference]) -> list[Verdict]:
    """Verdicts on the comparisons with one method (on all domains), corrected by Holm; unknown without p-values."""
    corrected = iter(holm([d.p for d in differences if d.p is not None]))
    return [Verdict(d, None if d.p is None else next(corrected)) for d in differences]


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


# --- Over seeds: what can be said of methods -------------------------------------------------------------------------


def t_interval(values: Sequence[float]) -> Interval | None:
    """95 % interval of the mean over seeds, by Student's t; None with one seed, and with seeds that do not vary.

    >>> round(t_interval([1.0, 2.0, 3.0]).low, 3)  # 2 - 4.303 / sqrt(3)
    -0.484
    """
    s = summarise(values)
    if s.error is None or s.error < NO_SPREAD:
        return None
    half = _t_quantile(s.n - 1) * s.error
    return Interval(s.mean - half, s.mean + half, f"Student's t, {s.n} seeds")


def over_seeds(a: Mapping[int, float], b: Mapping[int, float]) -> Difference:
    """a - b from accuracies by seed: paired where two seeds or more are common, else as two samples (Welch).

    There is no term for the images: the interval is about these test images and new training runs.

    >>> over_seeds({0: 3.0, 1: 5.0}, {0: 1.0, 1: 3.0}).p is None  # both gaps are 2.0: no variation to judge by
    True
    """
    common = sorted(a.keys() & b.keys())
    if len(common) < 2:
        return welch(summarise([*a.values()]), summarise([*b.values()]))
    gaps = [a[seed] - b[seed] for seed in common]
    s, interval = summarise(gaps), t_interval(gaps)
    p = None if interval is None or s.error is None else _two_sided(s.mean / s.error, s.n - 1)
    return Difference(s.mean, interval, p, s.n, "methods")


def welch(a: Summary, b: Summary, *, bound: bool = False) -> Difference:
    """Welch's t-test of two independent samples with unequal variances; unknown if one has a single value.

    ``bound``: a deviation is only known to be at most what is given; the smaller sample's degrees of freedom are then
    safe, where Satterthwaite's would grow with the bound.
    >>> round(welch(Summary(42.0, 1.74, 10), Summary(35.7, 2.0, 10)).p, 8)  # Table 1: ME-ADA and ADA on SVHN
    6.7e-07
    """
    value, n = a.mean - b.mean, min(a.n, b.n)
    if a.error is None or b.error is None:
        return Difference(value, seeds=n)
    error = math.hypot(a.error, b.error)
    if error < NO_SPREAD:
        return Difference(value, seeds=n, about="methods")
    freedom = n - 1 if bound else error**4 / (a.error**4 / (a.n - 1) + b.error**4 / (b.n - 1))
    half = _t_quantile(freedom) * error
    interval = Interval(value - half, value + half, "Welch's t")
    return Difference(value, interval, _two_sided(value / error, freedom), n, "methods")


def within(difference: Difference, margin: float) -> bool:
    """Whether the 95 % interval lies wholly within ``margin`` of zero: two one-sided tests, each at 0.025.

    >>> gap = welch(Summary(42.5, 1.7, 4), Summary(42.0, 1.74, 10))
    >>> within(gap, 5.0), within(gap, 2.0)
    (True, False)
    """
    span = difference.interval
    return span is not None and -margin < span.low and span.high < margin


def _t_quantile(freedom: int | float) -> float:
    return float(stdtrit(freedom, (1 + LEVEL) / 2))


def _two_sided(t: float, freedom: int | float) -> float:
    return 2 * float(stdtr(freedom, -abs(t)))


# --- Over images: what can be said of these models -------------------------------------------------------------------


def paired_bootstrap(a: Sets, b: Sets, *, draws: int = DRAWS, seed: int = 0) -> Difference:
    """Bootstrap over pictures of a - b in points, for two models scored on the same pictures.

    Rows are several views of the same pictures (corruptions, severities): a picture is drawn with all its rows. A
    mapping holds sets of different pictures (domains), which are drawn independently.

    >>> gap = paired_bootstrap([1, 1, 1, 0], [1, 0, 0, 0])
    >>> gap.value, gap.interval.low, gap.interval.high
    (50.0, 0.0, 100.0)
    """
    ours, theirs = _sets(a), _sets(b)
    if [(k, v.shape) for k, v in ours.items()] != [(k, v.shape) for k, v in theirs.items()]:
        shapes = [", ".join(f"{k or 'rows x pictures'} {v.shape}" for k, v in sets.items()) for sets in (ours, theirs)]
        raise MeadaError(f"both models must be scored on the same pictures, got {shapes[0]} and {shapes[1]}")
    gaps = {name: ours[name] - theirs[name] for name in ours}
    value, found = float(np.mean([np.mean(gap) for gap in gaps.values()])), _resampled(gaps, draws, seed)
    return Difference(value, _percentiles(found, "paired bootstrap over images"), bootstrap_p(found))


def image_interval(correct: Sets) -> Interval:
    """95 % interval of one model's accuracy (%), by resampling pictures."""
    return _percentiles(_resampled(_sets(correct), DRAWS, seed=0), "bootstrap over images, one seed")


def bootstrap_p(replicates: NDArray[np.float64]) -> float:
    """Two-sided bootstrap p-value: twice the smaller tail, with one added to each count so that it is never 0.
    >>> bootstrap_p(np.array([1.0] * 99))  # 2 * (0 + 1) / (99 + 1)
    0.02
    """
    sides = (np.sum(replicates <= 0), np.sum(replicates >= 0))
    return float(min(1.0, 2 * (min(sides) + 1) / (len(replicates) + 1)))


def _sets(correct: Sets) -> dict[str, NDArray[np.float64]]:
    """Correctness in points (0 to 100) by set, one column per picture."""
    named = correct if isinstance(correct, Mapping) else {"": correct}
    return {name: 100 * np.atleast_2d(np.asarray(one, np.float64)) for name, one in named.items()}


def _resampled(sets: Mapping[str, NDArray[np.float64]], draws: int, seed: int) -> NDArray[np.float64]:
    """Bootstrap replicates: the mean over sets of the means of resampled pictures.

    A mean depends only on how often each distinct value was drawn, which is multinomial: no picture is ever copied.
    """
    rng = np.random.default_rng(seed)
    means = []
    for points in sets.values():
        distinct, counts = np.unique(points.sum(0), return_counts=True)
        n = points.shape[1]
        means.append(rng.multinomial(n, counts / n, size=draws) @ distinct / points.size)
    return np.asarray(np.mean(means, 0), np.float64)


def _percentiles(replicates: NDArray[np.float64], how: str) -> Interval:
    low, high = np.quantile(replicates, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(low), float(high), how)


# --- Several methods or settings at once -----------------------------------------------------------------------------


def page_trend(best_first: Sequence[Sequence[float]]) -> float:
    """Page's exact test for an order of methods: each inner sequence has one method's value for every seed.

    Three seeds that all have the one order of the six come by chance in 1 of 6^3 cases.

    >>> round(page_trend([[3.0, 3.1, 3.2], [2.0, 2.1, 2.2], [1.0, 1.1, 1.2]]) * 6**3, 6)
    1.0
    """
    from scipy.stats import page_trend_test

    table = [list(of_seed)[::-1] for of_seed in zip(*best_first, strict=True)]
    return float(page_trend_test(table, method="exact").pvalue)


def residual(values: Sequence[float], *factors: Sequence[Hashable]) -> tuple[float, int] | None:
    """Residual standard deviation of an additive model, and its degrees of freedom; None if there are none.

    Each value is taken as a sum of one effect of every factor (settings, seeds), by least squares.
    """
    design = np.hstack([_indicators(labels) for labels in factors])
    effects, _, rank, _ = np.linalg.lstsq(design, np.asarray(values), rcond=None)
    freedom = len(values) - int(rank)
    if not freedom:
        return None
    return float(np.linalg.norm(values - design @ effects)) / math.sqrt(freedom), freedom


def _indicators(labels: Sequence[Hashable]) -> NDArray[np.float64]:
    """One-hot matrix of labels."""
    return np.array([[float(label == one) for one in dict.fromkeys(labels)] for label in labels])


def tukey_range(means: int, each: int, deviation: float, freedom: int) -> float:
    """The range that ``means`` of ``each`` values exceed in 5 of 100 studies if all are the same (studentised range).

    >>> round(tukey_range(3, 4, 1.0, 10), 2)  # q(0.05; 3, 10) = 3.877
    1.94
    """
    from scipy.stats import studentized_range

    return float(studentized_range.ppf(LEVEL, means, freedom)) * deviation / math.sqrt(each)
