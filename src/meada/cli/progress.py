"""Progress for people: a bar with time left on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from meada.machine.progress import Tell, bar
from meada.machine.terminal import printable


@contextmanager
def progress(label: str, *, quiet: bool = False) -> Iterator[Tell]:
    """``tell(phase, done, total)``: shown as a bar, as a line every so often, or not at all."""
    label = printable(label)
    if quiet:
        yield lambda phase, done, total: None
    elif sys.stderr.isatty():
        with bar(label) as tell:
            yield tell
    else:
        yield lines(label)


def lines(label: str, every: float = 15.0) -> Tell:
    current, last, began, first = "", 0.0, 0.0, 0

    def tell(phase: str, done: int, total: int) -> None:
        nonlocal current, last, began, first
        now = time.monotonic()
        if phase != current:
            current, began, first, last = phase, now, done, float("-inf")
        if now - last < every and done < total:
            return
        last = now
        pace = (now - began) / (done - first) if done > first else None
        left = f", {pace * (total - done):.0f} s left" if pace and done < total else ""
        print(f"{label}: {phase} {done:,}/{total:,}{left}", file=sys.stderr, flush=True)

    return tell
