"""Pieces of text that the tables of the paper share: lines of Markdown, a spread, a machine."""

from collections.abc import Mapping
from typing import Any

from meada.evaluation.statistics import Summary

SAME_BITS = (
    "On the same version of torch, kind of processor and number of threads a command repeats its "
    "record to the bit; elsewhere within rounding, which training magnifies."
)


def machine(environment: Mapping[str, Any]) -> str:
    """What a run computed on, for tables.

    >>> machine({"threads": 1, "processor": "some CPU"})
    '1 thread of some CPU'
    """
    threads = environment["threads"]
    return f"{threads} thread{'s' * (threads != 1)} of {environment['processor']}"


def spread(s: Summary, digits: int = 2) -> str:
    """
    >>> spread(Summary(2.0, 1.414, 2)), spread(Summary(1.0, None, 1))
    ('2.00 ± 1.41', '1.00')
    """
    return f"{s.mean:.{digits}f}" + ("" if s.std is None else f" ± {s.std:.{digits}f}")


def line(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def head(*cells: str) -> list[str]:
    return [line(*cells), line(*["---"] * len(cells))]
