"""Families of recipes: one for every cell of a published table, all of them from one file.

A family's file has three kinds of part, ``sets``, ``networks`` and ``methods``, each a piece of a
recipe. ``SET/NETWORK-METHOD`` is what all have in ``shared``, then the three pieces over it. A
method with a ``supplement`` has the settings in ``ascent``, and those that it names from the table
of that name, which has them for each set and network.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

FAMILIES = ("_table3.toml",)
AXES = ("sets", "networks", "methods")


@cache
def family(folder: Path) -> dict[str, dict[str, Any]]:
    """Every recipe of every family in ``folder`` by its name."""
    members: dict[str, dict[str, Any]] = {}
    for file in FAMILIES:
        whole = tomllib.loads((folder / file).read_text(encoding="utf-8"))
        members |= {
            f"{data}/{network}-{method}": _member(whole, data, network, method)
            for data in whole["sets"]
            for network in whole["networks"]
            for method in whole["methods"]
        }
    return members


def _member(whole: Mapping[str, Any], *cell: str) -> dict[str, Any]:
    pieces = [dict(whole[axis][name]) for axis, name in zip(AXES, cell, strict=True)]
    wanted = pieces[2].pop("supplement", [])
    given = whole["supplement"][cell[0]][cell[1]]
    ascent = {**whole["ascent"], **{k: given[k] for k in wanted}} if wanted else {}
    titles = [piece.pop("title") for piece in pieces]
    table = dict(whole["shared"])
    for piece in pieces:
        table = merge(table, piece)
    note = f"{whole['title']}: {', '.join(titles)}"
    return {**table, "note": note, "method": {**table["method"], **ascent}}


def merge(base: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, Any]:
    """``table`` over ``base``, key by key; another method or network starts from nothing.

    >>> merge({"a": {"name": "x", "b": 1}}, {"a": {"b": 2}})
    {'a': {'name': 'x', 'b': 2}}
    >>> merge({"a": {"name": "x", "b": 1}}, {"a": {"name": "y"}})
    {'a': {'name': 'y'}}
    """
    merged = dict(base)
    for key, value in table.items():
        old = merged.get(key)
        if isinstance(value, dict) and isinstance(old, dict) and _same_name(old, value):
            value = merge(old, value)
        merged[key] = value
    return merged


def _same_name(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    return old.get("name") == new.get("name", old.get("name"))
