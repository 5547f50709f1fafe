"""Interleave timings (A, B, C, A, B, C, ...), so that a slower machine slows all sides equally."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

Work = Callable[[], object]
Side = Callable[[], Work]  # makes ready outside the clock; what it gives back is timed
Times = dict[str, list[float]]  # seconds of each side, round by round
Tell = Callable[[int, int], None]


@dataclass(frozen=True)
class Spread:
    """Median, minimum and maximum over the rounds.

    >>> Spread.of([3.0, 1.0, 2.0])
    Spread(median=2.0, low=1.0, high=3.0)
    """

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        return cls(median(values), min(values), max(values))


@dataclass(frozen=True, kw_only=True)
class Result:
    """Result of one case: a value in ``unit`` per side, and ratios."""

    about: str
    unit: str
    rounds: int
    sides: dict[str, Spread]
    ratios: dict[str, Spread] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    def table(self) -> dict[str, Any]:
        return asdict(self)


def interleave(
    sides: Mapping[str, Side],
    rounds: int,
    tell: Tell = lambda d, n: None,
    clock: Callable[[], float] = time.perf_counter,
) -> Times:
    """Time every side in each of ``rounds`` rounds, in seconds."""
    times: Times = {name: [] for name in sides}
    for number in range(rounds):
        for name, side in sides.items():
            work = side()
            began = clock()
            work()
            times[name].append(clock() - began)
        tell(number + 1, rounds)
    return times


def scaled(times: Sequence[float], factor: float) -> Spread:
    """Seconds in another unit: ``scaled(t, 1e3 / n)`` is milliseconds for each of n."""
    return Spread.of([t * factor for t in times])


def speedup(slow: Sequence[float], fast: Sequence[float]) -> Spread:
    """Speedup as the ratio of times in the same round, so that common slowdowns cancel.

    >>> speedup([4.0, 8.0, 6.0], [2.0, 4.0, 2.0])
    Spread(median=2.0, low=2.0, high=3.0)
    """
    return Spread.of([a / b for a, b in zip(slow, fast, strict=True)])


def work(function: Callable[..., object], *args: Any, **options: Any) -> Side:
    """A side that needs no preparation."""
    return lambda: lambda: function(*args, **options)
