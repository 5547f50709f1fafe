"""Measure seconds: of a piece of work, and of each phase of a run."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from statistics import median


class Clock:
    """Seconds per phase of a run; ``seconds`` of an earlier process are carried over."""

    def __init__(self, seconds: dict[str, float] | None = None) -> None:
        self.seconds = {"minimise": 0.0, "maximise": 0.0, "evaluate": 0.0, **(seconds or {})}
        self._phase, self._since = "minimise", time.perf_counter()

    @property
    def running(self) -> float:
        """Seconds since the phase began."""
        return time.perf_counter() - self._since

    def switch(self, phase: str, *, earlier: float = 0.0) -> float:
        """Start another phase, or continue one that took ``earlier`` seconds in another process.

        Gives back how long the last one took.
        """
        now = time.perf_counter()
        took = now - self._since
        self.seconds[self._phase] += took
        self._phase, self._since = phase, now - earlier
        return took

    @contextmanager
    def during(self, phase: str) -> Iterator[None]:
        before = self._phase
        self.switch(phase)
        try:
            yield
        finally:
            self.switch(before)


def seconds_of(work: Callable[[], object]) -> float:
    since = time.perf_counter()
    work()
    return time.perf_counter() - since


def median_gap(times: Sequence[float]) -> float:
    """The median time between one and the next.

    >>> median_gap([0.0, 1.0, 3.0, 5.0])
    2.0
    """
    return median(after - before for before, after in pairwise(times))
