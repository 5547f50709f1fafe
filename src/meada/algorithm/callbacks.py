"""Callbacks: objects that are called at the start, at each log entry and at the end of a training."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from meada.errors import MeadaError

Log = Callable[[int, Mapping[str, float]], None]


class Callback:
    """Subclass it and override what you need; :mod:`meada.integrations.tracking` has ready ones."""

    def on_start(self, about: Mapping[str, Any]) -> None:
        """Before the first step: method, network, seed and settings."""

    def on_log(self, step: int, values: Mapping[str, float]) -> None:
        """After a step, a round or a validation: numbers by name, such as ``loss``."""

    def on_end(self, record: Mapping[str, Any] | None) -> None:
        """After the last step, with the record; None if the training ended with an error."""


def as_callbacks(given: Callback | Log | Iterable[Callback | Log]) -> list[Callback]:
    """Convert one callback or several to a list; a plain function of ``(step, values)`` is a callback too.

    >>> heard = []
    >>> (one,) = as_callbacks(lambda step, values: heard.append(step))
    >>> one.on_log(3, {"loss": 0.5}); heard
    [3]
    """
    return [_as_callback(one) for one in (given if isinstance(given, Iterable) else [given])]


def _as_callback(one: Callback | Log) -> Callback:
    if isinstance(one, Callback):
        return one
    if isinstance(one, type) or not callable(one):
        hint = ": call it, to have an instance" if isinstance(one, type) else ""
        raise MeadaError(f"a callback must be a meada.Callback or a function of (step, values), got {one!r}{hint}")
    callback = Callback()
    callback.on_log = one  # type: ignore[method-assign, assignment]
    return callback


def numbers(table: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """Flatten a nested table of numbers for trackers; pairs become ``before`` and ``after``.

    >>> numbers({"ce": [1.0, 2.0], "pool": 8, "warnings": ["none"]}, "round/")
    {'round/ce/before': 1.0, 'round/ce/after': 2.0, 'round/pool': 8.0}
    """
    found: dict[str, float] = {}
    for name, value in table.items():
        if isinstance(value, list) and len(value) == 2:
            value = dict(zip(("before", "after"), value, strict=True))
        if isinstance(value, Mapping):
            found |= numbers(value, f"{prefix}{name}/")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found[f"{prefix}{name}"] = float(value)
    return found
