"""The shape of records and logs: what a report relies on is checked once, when a file is read."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from meada.errors import MeadaError

# A type or several, a list of one shape, or a table: its known keys (with "!" those that must be there), under "*" all
# others.
Shape = Any
NUMBER = (int, float)
MAYBE = (int, float, type(None))
SCORES: Shape = {
    "accuracy!": NUMBER, "n!": int, "ece": MAYBE, "nll": MAYBE, "brier": MAYBE, "by_severity": {"accuracy!": [NUMBER]},
}  # fmt: skip
ROUND: Shape = {
    "round": int, "pool": int, "ce": [NUMBER], "entropy": [NUMBER], "plug_in_entropy": [MAYBE], "information": [MAYBE],
    "rise": {"*": MAYBE}, "bound": {"*": MAYBE}, "levels": {"*": MAYBE}, "spectrum": {"*": [MAYBE]}, "warnings": [str],
    "cost": MAYBE, "linf": MAYBE, "linf_max": MAYBE, "linf_median": MAYBE, "looked_at": int, "seconds": NUMBER,
}  # fmt: skip
RECORD: Shape = {
    "recipe": str, "note": str, "method": str, "network": str, "data": str, "seed": int, "scale": NUMBER, "steps": int,
    "passes": {"*": NUMBER}, "environment": {"threads": int, "processor": str}, "provenance": {},
    "weights": (dict, type(None)), "rounds": [ROUND], "seconds": {"*": NUMBER},
    "selected": {"*": {"step": int}}, "source": {"*": SCORES}, "clean": {"*": SCORES}, "results": {"*": {"*": SCORES}},
}  # fmt: skip
FINISHED: Shape = {
    **RECORD, "steps!": int, "seconds!": {"*": NUMBER}, "environment!": {"threads!": int, "processor!": str},
}  # fmt: skip
LINE: Shape = {**ROUND, "step": int, "loss": NUMBER, "scores": {"*": NUMBER}}
PAIRS = ("ce", "entropy", "plug_in_entropy", "information")  # before and after


def check(content: Any, shape: Shape, where: Path, key: str = "") -> None:
    """Refuse a file whose values are not of the kinds that meada writes.

    >>> check({"seconds": {"minimise": "long"}}, RECORD, Path("record.json"))
    Traceback (most recent call last):
    meada.errors.MeadaError: record.json: 'seconds.minimise' must be a number, got 'long'
    """
    name = key.rpartition(".")[2]
    if isinstance(shape, Mapping):
        _expect(isinstance(content, dict), "a table", content, where, key)
        below = f"{key}." if key else ""
        for inner in (name.removesuffix("!") for name in shape if name.endswith("!")):
            _expect(inner in content, "there", "nothing", where, below + inner)
        for inner, value in content.items():
            if (wanted := shape.get(f"{inner}!", shape.get(inner, shape.get("*")))) is not None:
                check(value, wanted, where, below + inner)
    elif isinstance(shape, list):
        whole = isinstance(content, list) and (name not in PAIRS or len(content) == 2)
        _expect(whole, "a list" if name not in PAIRS else "a list of two", content, where, key)
        for place, value in enumerate(content):
            check(value, shape[0], where, f"{key}.{place}")
    else:
        kinds = shape if isinstance(shape, tuple) else (shape,)
        right = isinstance(content, kinds) and not (isinstance(content, bool) and bool not in kinds)
        title = "text" if str in kinds else "a table" if dict in kinds else "a number"
        _expect(right, title, content, where, key)


def _expect(right: bool, wanted: str, got: Any, where: Path, key: str) -> None:
    if not right:
        raise MeadaError(f"{where}: '{key}' must be {wanted}, got {got!r:.80}")
