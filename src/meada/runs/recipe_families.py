"""The recipes of the package: their names, and families of recipes in one file.

A family has a recipe for every cell of a published table. Its file names its ``axes``; each is a table of pieces of a
recipe. A member is what all have in ``shared``, then one piece of every axis over it, in the order of the axes.
``names`` says what it is called by the pieces' keys, ``notes`` what its note is by their titles. A piece with a
``supplement`` gives the method the settings in ``ascent``, and those that it lists from the table
``supplement``, which has them for each key, or keys, of the axes that they depend on.

Nothing heavy is imported, so that a list of names is quick.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from meada.errors import MeadaError, nearest

FAMILIES = ("_table2.toml", "_table3.toml")


@cache
def family(folder: Path) -> dict[str, dict[str, Any]]:
    """All recipes of the families in ``folder`` by name."""
    members: dict[str, dict[str, Any]] = {}
    for whole in _files(folder):
        axes = whole["axes"]
        for keys in product(*(whole[axis] for axis in axes)):
            cell = dict(zip(axes, keys, strict=True))
            members[whole["names"].format(**cell)] = _member(whole, cell)
    return members


def braces(names: Iterable[str]) -> str:
    """
    >>> braces(["", "-small"]), braces(["erm"])
    ('{,-small}', 'erm')
    """
    several = list(names)
    return "{" + ",".join(several) + "}" if len(several) > 1 else several[0]


def _files(folder: Path) -> Iterator[dict[str, Any]]:
    for file in FAMILIES:
        yield tomllib.loads((folder / file).read_text(encoding="utf-8"))


def _member(whole: Mapping[str, Any], cell: Mapping[str, str]) -> dict[str, Any]:
    pieces = {axis: dict(whole[axis][key]) for axis, key in cell.items()}
    titles = {axis: piece.pop("title") for axis, piece in pieces.items()}
    wanted = [key for piece in pieces.values() for key in piece.pop("supplement", [])]
    table = dict(whole["shared"])
    for piece in pieces.values():
        table = merge(table, piece)
    given = _given(whole["supplement"], cell)
    ascent = {**whole["ascent"], **{key: given[key] for key in wanted}} if wanted else {}
    note = whole["notes"].format(**titles)
    return {**table, "note": note, "method": {**table["method"], **ascent}}


def _given(supplement: Mapping[str, Any], cell: Mapping[str, str]) -> Mapping[str, Any]:
    """Look up a cell in a table that is nested by some of the axes.

    >>> _given({"sketch": {"beta": 100.0}}, {"methods": "meada", "targets": "sketch"})
    {'beta': 100.0}
    """
    for key in cell.values():
        supplement = supplement.get(key, supplement)
    return supplement


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
        if isinstance(value, dict) and isinstance(old, dict) and value.get("name", old.get("name")) == old.get("name"):
            value = merge(old, value)
        merged[key] = value
    return merged


SHIPPED = Path(__file__).parent / "recipes"


def recipe_names() -> list[str]:
    return sorted([*_recipe_files(), *family(SHIPPED)])


def unknown_recipe(name: str) -> MeadaError:
    if name.endswith(".toml"):
        return MeadaError(f"unknown recipe '{name}': there is no such file")
    return MeadaError(f"unknown recipe '{name}': {nearest(name, recipe_names())}")


def recipe_patterns() -> list[str]:
    """Recipe names in short: ``digits/{ada,erm}`` stands for two."""
    groups: dict[str, list[str]] = {}
    for name in _recipe_files():
        folder, _, last = name.rpartition("/")
        groups.setdefault(folder, []).append(last)
    families = [
        whole["names"].format(**{axis: braces(whole[axis]) for axis in whole["axes"]}) for whole in _files(SHIPPED)
    ]
    return [*(f"{folder}/{braces(names)}" for folder, names in groups.items()), *families]


def _recipe_files() -> list[str]:
    paths = sorted(SHIPPED.rglob("*.toml"))
    return [str(p.relative_to(SHIPPED).with_suffix("")) for p in paths if p.name[0] != "_"]
