"""Errors about input: one sentence for the user, exit code 2, no traceback."""

from collections.abc import Iterable
from difflib import get_close_matches
from math import inf, isfinite
from numbers import Integral
from typing import Any


class MeadaError(ValueError):
    """Bad input. The message names the file or key, what is wrong and what would be right."""


class NonFiniteError(MeadaError):
    """A loss, a gradient or a prediction became infinite or NaN."""


def one_line(error: BaseException, most: int = 200) -> str:
    """The message of an exception in one line; its class name if the message is empty.

    >>> one_line(OSError("no\\n  such file")), one_line(KeyError())
    ('no such file', 'KeyError')
    """
    return " ".join(str(error).split())[:most] or type(error).__name__


def some(names: Iterable[str], shown: int = 3, between: str = ", ") -> str:
    """The first few names and the number of the others.

    >>> some(["a", "b"]), some("abcde"), some("abcde", between="; ")
    ('a, b', 'a, b, c and 2 more', 'a; b; c; and 2 more')
    """
    names = list(names)
    more = f"{between.strip(', ')} and {len(names) - shown:,} more" if len(names) > shown else ""
    return between.join(names[:shown]) + more


def nearest(name: str, known: Iterable[str]) -> str:
    """End of an error message about an unknown name: the closest known name, or all names.

    >>> nearest("bta", ["beta", "gamma"])
    "did you mean 'beta'?"
    >>> nearest("zzz", ["beta", "gamma"])
    'known: beta, gamma'
    """
    names = sorted(known)
    close = get_close_matches(name, names, n=1, cutoff=0.5)
    return f"did you mean '{close[0]}'?" if close else f"known: {some(names, 25) or 'none'}"


def check_range(who: str, interval: str, **values: float | int) -> None:
    """Refuse numbers outside an interval such as ``[0, 1)`` or ``(0, inf)``.

    >>> check_range("hex", "[0, inf)", lr=0.1, after=-1)
    Traceback (most recent call last):
    meada.errors.MeadaError: hex: after must be 0 or more, got -1
    """
    low, high = (float(bound) for bound in interval[1:-1].split(","))
    for name, value in values.items():
        above = value >= low if interval[0] == "[" else value > low
        if not (above and (value <= high if interval[-1] == "]" else value < high)):
            bound = f"{low:g} or more" if interval[0] == "[" else f"greater than {low:g}"
            raise MeadaError(f"{who}: {name} must be {bound if high == inf else f'in {interval}'}, got {value}")


def check_count(name: str, value: Any, *, least: int) -> None:
    """Refuse anything but a whole number of at least ``least``."""
    if not isinstance(value, Integral):
        raise MeadaError(f"{name} must be a whole number, got {value!r}")
    if value < least:
        raise MeadaError(f"{name} must be {least} or more, got {value}")


def check_numbers(**values: Any) -> None:
    """Refuse values that are not finite numbers."""
    for name, value in values.items():
        try:
            finite = not isinstance(value, str) and isfinite(float(value))
        except (TypeError, ValueError):
            finite = False
        if not finite:
            raise MeadaError(f"{name} must be a finite number, got {value!r}")
