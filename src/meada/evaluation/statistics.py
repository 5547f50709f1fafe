"""Means over seeds, with what can be said of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import stdtrit

LEVEL = 0.95  # of intervals


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
    low: float
    high: float
    how: str


def t_interval(values: Sequence[float]) -> Interval | None:
    """Of the mean over seeds, by Student's t; unknown with one seed.

    >>> round(t_interval([1.0, 2.0, 3.0]).low, 3)  # 2 - 4.303 / sqrt(3)
    -0.484
    """
    s = summarise(values)
    if s.error is None:
        return None
    half = float(stdtrit(s.n - 1, (1 + LEVEL) / 2)) * s.error
    return Interval(s.mean - half, s.mean + half, f"t, {s.n} seeds")
