"""Means over seeds, with what can be said of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


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


def standard_errors_apart(a: Summary, b: Summary) -> float | None:
    """How many standard errors of the difference lie between two means; unknown with one seed.

    >>> round(standard_errors_apart(Summary(3.0, 1.0, 4), Summary(1.0, 1.0, 4)), 3)
    2.828
    """
    if a.error is None or b.error is None:
        return None
    width = math.hypot(a.error, b.error)
    return math.copysign(math.inf, a.mean - b.mean) if width == 0 else (a.mean - b.mean) / width
