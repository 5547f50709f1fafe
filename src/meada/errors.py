"""What goes wrong because of what was asked: one sentence, exit code 2, no traceback."""

from collections.abc import Iterable
from difflib import get_close_matches


class MeadaError(ValueError):
    """Bad input. The message names the file or key, what is wrong and what would be right."""


class NonFiniteError(MeadaError):
    """A loss, a gradient or a prediction became infinite or NaN."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The rest of a sentence about an unknown name: the closest known one, or all of them.

    >>> nearest("bta", ["beta", "gamma"])
    "did you mean 'beta'?"
    >>> nearest("zzz", ["beta", "gamma"])
    'known: beta, gamma'
    """
    names = sorted(known)
    close = get_close_matches(name, names, n=1, cutoff=0.5)
    return f"did you mean '{close[0]}'?" if close else f"known: {', '.join(names)}"
