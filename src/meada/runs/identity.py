"""Decide whether two runs are the same experiment: settings such as the device do not count."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from meada.runs.recipe import Recipe, from_toml
from meada.runs.run_folder import RunFolder
from meada.settings import flattened

# Where and how a run was carried out. ``pool.store`` is not among them: 8 bits or 32 make other samples.
NOT_COMPARED = {"note", "device", "checkpoint_seconds", "pool.memory_mb", "pool.keep", "data.root", "data.cache"}


def experiment_settings(recipe: Recipe | Mapping[str, Any], *, seed: bool = True) -> dict[str, Any]:
    """The settings that define the experiment, flattened; a table may omit defaults of sections.

    >>> one, same = {"name": "mine", "device": "cpu"}, {"name": "mine", "pool": {"store": "float32"}}
    >>> experiment_settings(one) == experiment_settings(same)
    True
    >>> experiment_settings(one) == experiment_settings({**same, "pool": {"store": "uint8"}})
    False
    """
    table = recipe.model_dump() if isinstance(recipe, Recipe) else dict(recipe)
    left_out = NOT_COMPARED if seed else NOT_COMPARED | {"seed"}
    found = {k: v for k, v in {**_defaults(), **flattened(table)}.items() if k not in left_out and v is not None}
    return {k: list(v) if isinstance(v, tuple) else v for k, v in found.items()}  # TOML has lists only


def same_experiment(a: Recipe, b: Recipe) -> bool:
    """Whether two recipes define the same experiment, including the seed."""
    return experiment_settings(a) == experiment_settings(b)


@cache
def _defaults() -> dict[str, Any]:
    """Defaults of the recipe and its sections, for settings that older recipes do not have."""
    fields = {k: field.default for k, field in Recipe.model_fields.items() if not field.is_required()}
    return flattened({k: v.model_dump() if isinstance(v, BaseModel) else v for k, v in fields.items()})


def recipe_in(folder: RunFolder) -> Recipe:
    """The recipe in a run's folder; files that did not change are read once."""
    return _recipe(folder.recipe.resolve(), folder.recipe.stat().st_mtime_ns)


@cache
def _recipe(path: Path, changed: int) -> Recipe:
    return from_toml(path)
