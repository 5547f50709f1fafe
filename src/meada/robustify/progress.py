"""One progress bar over all stages, with the time left: on a terminal, in a notebook, or as lines."""

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from meada.robustify.plan import duration

EVERY = 15.0  # seconds between lines where there is no terminal


class Bar:
    """Estimates the time left from the expected seconds of each stage, corrected by the measured pace."""

    def __init__(self, shown: Progress | None, quiet: bool) -> None:
        self._shown, self._quiet = shown, quiet
        self._task = shown.add_task("reading pictures", total=1.0, left="") if shown else None
        self._expected: dict[str, float] = {}
        self._pace, self._last, self._stage, self._began = 1.0, float("-inf"), "", 0.0

    def expect(self, seconds: Mapping[str, float]) -> None:
        self._expected, self._pace = dict(seconds), 1.0

    def reading(self, done: int, n: int) -> None:
        self._show("reading pictures", done / max(n, 1), None)

    def tell(self, stage: str, done: int, n: int) -> None:
        """Report that ``done`` of ``n`` parts of a stage are finished."""
        now, share = time.monotonic(), done / max(n, 1)
        if stage != self._stage:
            self._stage, self._began = stage, now
        spent, should = now - self._began, self._expected.get(stage, 0.0)
        if share > 0.05 and should * share > 1 and spent > 1:  # not a stage that was already finished
            self._pace = spent / (should * share)
        names = list(self._expected)
        ahead = names[names.index(stage) + 1 :] if stage in names else names
        left = self._pace * ((1 - share) * should + sum(self._expected[name] for name in ahead))
        total = sum(self._expected.values())
        over = 1 - left / (self._pace * total) if total else 0.0
        self._show(stage, min(max(over, 0.0), 1.0), left if total else None)

    def _show(self, words: str, share: float, left: float | None) -> None:
        remaining = "" if left is None else f"{duration(left)} left"
        if self._shown is not None and self._task is not None:
            self._shown.update(self._task, description=words, completed=share, left=remaining)
        elif not self._quiet and (time.monotonic() - self._last > EVERY):
            self._last = time.monotonic()
            line = f"robustify: {words} {100 * share:.0f} %{remaining and ', ' + remaining}"
            print(line, file=sys.stderr, flush=True)


@contextmanager
def progress(quiet: bool = False) -> Iterator[Bar]:
    console = Console(stderr=True)
    if quiet or not (console.is_terminal or console.is_jupyter):
        yield Bar(None, quiet)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[left]}"))
    with Progress(*columns, console=console, transient=True) as shown:
        yield Bar(shown, quiet)
