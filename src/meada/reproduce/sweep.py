"""A grid of settings around one recipe, each with several seeds, as a list of runs."""

from collections.abc import Sequence
from itertools import product

from meada.errors import MeadaError, nearest
from meada.reproduce.item import Item
from meada.runs.recipe import Recipe, load_recipe
from meada.settings import flattened


def sweep(recipe: str, grid: Sequence[str], seeds: int, changes: list[str], trust: Sequence[str] = ()) -> list[Item]:
    """One run per seed and per combination of values.

    ``grid`` has entries such as ``beta=1,10,100`` or ``method.beta=1,10,100``.
    """
    if seeds < 1:
        raise MeadaError(f"--seeds must be 1 or more, got {seeds}")
    plain = load_recipe(recipe, changes, trust=trust)
    axes = [axis(plain, entry) for entry in grid]
    keys = [values[0].partition("=")[0] for values in axes]
    if len(set(keys)) < len(keys):
        raise MeadaError(f"--grid must name each key once, with all its values, got {', '.join(keys)}")
    items = [
        Item(load_recipe(recipe, [*changes, *cell], trust=trust, seed=seed))
        for seed in range(seeds)
        for cell in product(*axes)
    ]
    return list({item.name: item for item in items}.values())


def axis(recipe: Recipe, entry: str) -> list[str]:
    """The changes that one entry of the grid stands for.

    >>> axis(load_recipe("digits/meada"), "beta=1,10")
    ['method.beta=1', 'method.beta=10']
    """
    key, sign, text = entry.partition("=")
    values = [value.strip() for value in text.split(",")]
    if not sign or not key.strip() or not all(values):
        raise MeadaError(f"--grid must be key=value,value, as in beta=1,10,100, got {entry}")
    if len(set(values)) < len(values) or {value.lower().lstrip("+-") for value in values} & {"nan", "inf"}:
        raise MeadaError(f"--grid {entry}: values must be finite and different from each other")
    name = full_key(recipe, key.strip())
    return [f"{name}={value}" for value in values]


def full_key(recipe: Recipe, key: str) -> str:
    """A key with its table; the table may be left out if only one has such a key."""
    known = sorted(flattened(recipe.model_dump()))
    if key == "seed":
        raise MeadaError("--grid must not name seed: --seeds says how many seeds each choice has")
    if key in known:
        return key
    found = [name for name in known if name.rpartition(".")[2] == key]
    if len(found) > 1:
        raise MeadaError(f"--grid must name one key, got {key}, which may be {' or '.join(found)}; write it in full")
    if not found:
        raise MeadaError(f"--grid must name a key of the recipe, got {key}; {nearest(key, known)}")
    return found[0]
