"""Terminal output: progress, and text with escaped control characters."""

import re
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.text import Text

NOT_PLAIN_ASCII = re.compile(r"[^ -~\n\t]")  # whatever is not plain ASCII, lines and tabs
HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # Unicode's control, format, surrogate and separator characters
Tell = Callable[[str, int, int], None]  # progress: phase, done, of how many
Count = Callable[[int, int], None]  # inside one phase, ``partial(tell, phase)``: done, of how many


def printable(text: object) -> str:
    r"""Escape control characters except newlines and tabs.

    >>> printable("a\x1b[31mred\nb")
    'a\\x1b[31mred\nb'
    """
    return NOT_PLAIN_ASCII.sub(_shown, str(text))


def _shown(character: re.Match[str]) -> str:
    c = character.group()
    return c.encode("unicode_escape", "surrogatepass").decode() if unicodedata.category(c) in HIDDEN else c


class SafeConsole(Console):
    """Rich's console, for which a string is text and never markup."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **{**options, "markup": False, "emoji": False})


@contextmanager
def bar(label: str) -> Iterator[Tell]:
    """A progress bar with the time left."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("left")
    with Progress(TextColumn("{task.description}"), *columns, console=Console(stderr=True), transient=True) as shown:
        task, current = shown.add_task(f"{label}: reading data", total=None), ""

        def tell(phase: str, done: int, total: int) -> None:
            nonlocal current, task
            if phase != current:  # a new phase has a speed of its own
                shown.remove_task(task)
                task, current = shown.add_task(f"{label}: {phase}", total=total), phase
                shown.reset(task, total=total, completed=done)
            shown.update(task, completed=done)

        yield tell


@contextmanager
def progress(label: str, *, quiet: bool = False) -> Iterator[Tell]:
    """``tell(phase, done, total)``: shown as a bar, as a line from time to time, or not at all."""
    label = printable(label)
    if quiet:
        yield lambda phase, done, total: None
    elif sys.stderr.isatty():
        with bar(label) as tell:
            yield tell
    else:
        yield lines(label)


def lines(label: str, every: float = 15.0) -> Tell:
    """Print a line every ``every`` seconds."""
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
