"""Lowest accepted speed ratios for ``--check``. Absolute times are not compared: they depend on the machine."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from meada.errors import MeadaError

SHIPPED = Path(__file__).with_name("floors.toml")

Floors = dict[str, dict[str, float]]  # case -> ratio's name (or "agreement") -> lowest allowed


def load_floors(path: Path = SHIPPED) -> Floors:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise MeadaError(f"{path} is not TOML: {error}") from None
    for case, floors in table.items():
        if not isinstance(floors, dict) or not all(isinstance(v, int | float) for v in floors.values()):
            raise MeadaError(f"{path}: '{case}' must be a table of numbers, as in published = 2.5")
    return {case: {k: float(v) for k, v in floors.items()} for case, floors in table.items()}


def fallen(record: Mapping[str, Any], floors: Floors) -> list[str]:
    """One message per ratio below its floor; cases that were not run are skipped.

    >>> case = {"ratios": {"published": {"median": 1.9}}, "facts": {}}
    >>> fallen({"cases": {"data": case}}, {"data": {"published": 2.0}, "gemm": {"x": 1}})
    ['data: published is 1.90, its floor is 2']
    """
    return [
        f"{name}: {what} is {_shown(got)}, its floor is {floor:g}"
        for name, wanted in floors.items()
        if name in record["cases"]
        for what, floor in wanted.items()
        if not (got := _found(record["cases"][name], name, what)) >= floor
    ]


def _found(case: Mapping[str, Any], name: str, what: str) -> float:
    if what in case["ratios"]:
        return float(case["ratios"][what]["median"])
    if what in case["facts"]:
        return float(case["facts"][what])
    known = ", ".join([*case["ratios"], *case["facts"]])
    raise MeadaError(f"the floors of '{name}' must be for one of its ratios, {known}, got '{what}'")


def _shown(value: float) -> str:
    return f"{value:.5f}" if 0.99 < value < 1 else f"{value:.2f}"
