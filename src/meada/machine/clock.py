"""Measure the seconds spent in each phase of a run."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


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
