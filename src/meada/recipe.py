"""Recipes: an experiment as a TOML file, read into frozen settings that are checked whole."""

import inspect
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from meada.algorithm import Plan
from meada.datasets import DATASETS
from meada.device import Device, Precision
from meada.errors import MeadaError, nearest
from meada.methods import METHODS
from meada.networks.lookup import network
from meada.optimise import Descent
from meada.settings import BadSetting, Settings, explain

SHIPPED = Path(__file__).parent / "recipes"


Find = Callable[[str], Callable[..., Any]]


def _among(kind: str, known: Mapping[str, Callable[..., Any]]) -> Find:
    def find(name: str) -> Callable[..., Any]:
        if name not in known:
            raise MeadaError(f"unknown {kind} '{name}': " + nearest(name, known))
        return known[name]

    return find


FIND: dict[str, Find] = {
    "data": _among("data set", DATASETS),
    "network": network,
    "method": _among("method", METHODS),
}


class PoolSettings(Settings):
    store: Literal["float32", "uint8"] = "float32"
    memory_mb: int = Field(2048, ge=0)  # above it, new blocks stay on disk
    keep: bool = False  # leave the pool's files in the run's folder when it is done


class EvaluationSettings(Settings):
    every: int = Field(200, ge=1)  # steps between candidates
    subset: int = Field(600, ge=1)  # images of each domain that score a candidate
    crafted: int = Field(200, ge=1)  # held-out source images under each crafted shift


class Recipe(Settings):
    """Everything that a run depends on. ``data``, ``network`` and ``method`` each name a function

    and hold its arguments.
    """

    name: str
    note: str = ""
    seed: int = Field(0, ge=0)
    data: dict[str, Any]
    network: dict[str, Any]
    method: dict[str, Any]
    plan: Plan = Plan()
    descent: Descent = Descent()
    pool: PoolSettings = PoolSettings()
    evaluation: EvaluationSettings = EvaluationSettings()
    embedding: str = ""  # the submodule whose output is z; empty: the input of the last Linear
    device: Device = "auto"
    precision: Precision = "fp32"
    checkpoint_seconds: float = Field(60.0, ge=0)


SECTIONS: dict[str, type[Settings]] = {
    "plan": Plan,
    "descent": Descent,
    "pool": PoolSettings,
    "evaluation": EvaluationSettings,
}


def recipe_names() -> list[str]:
    paths = sorted(SHIPPED.rglob("*.toml"))
    return [str(p.relative_to(SHIPPED).with_suffix("")) for p in paths if p.name[0] != "_"]


def load_recipe(name: str, changes: list[str] | None = None, **values: Any) -> Recipe:
    """A shipped recipe by its name, or a TOML file by its path, with ``a.b=c`` changes applied."""
    table = _read(name)
    table.setdefault("name", name.removesuffix(".toml"))
    for change in changes or []:
        _set(table, change)
    return resolve({**table, **values})


def resolve(table: Mapping[str, Any]) -> Recipe:
    """Checked whole, every default written out."""
    filled = dict(table)
    for kind, find in FIND.items():
        filled[kind] = _arguments(kind, filled.get(kind), find)
    for section, settings in SECTIONS.items():
        filled[section] = _section(section, settings, filled.get(section, {}))
    recipe = Recipe(**filled)
    make("method", recipe.method)  # a method checks its own numbers: now, not in round 1
    return recipe


def make(kind: str, table: Mapping[str, Any], **more: Any) -> Any:
    """What ``table`` names, called with the arguments that it holds."""
    arguments = dict(table)
    return FIND[kind](arguments.pop("name"))(**arguments, **more)


def to_toml(recipe: Recipe) -> str:
    return tomli_w.dumps(_without_none(recipe.model_dump()))


def from_toml(path: Path) -> Recipe:
    return resolve(_parse(path))


def _read(name: str) -> dict[str, Any]:
    shipped = SHIPPED / f"{name}.toml"
    path = Path(name) if name.endswith(".toml") else shipped
    if not path.is_file():
        known = recipe_names()
        raise MeadaError(f"unknown recipe '{name}': " + nearest(name, known))
    table = _parse(path)
    parents = table.pop("extends", [])
    for parent in reversed([parents] if isinstance(parents, str) else parents):
        table = _merge(_read(parent), table)
    return table


def _parse(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise MeadaError(f"{path} is not TOML: {error}") from None


def _merge(base: dict[str, Any], table: Mapping[str, Any]) -> dict[str, Any]:
    """``table`` over ``base``, key by key; another method or network starts from nothing."""
    merged = dict(base)
    for key, value in table.items():
        old = merged.get(key)
        if isinstance(value, dict) and isinstance(old, dict) and _same_name(old, value):
            value = _merge(old, value)
        merged[key] = value
    return merged


def _same_name(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    return old.get("name") == new.get("name", old.get("name"))


def _set(table: dict[str, Any], change: str) -> None:
    """Apply one ``a.b=c``; the value is read as TOML, or as a plain string if it is none."""
    path, sign, text = change.partition("=")
    if not sign or not path.strip():
        raise MeadaError(f"--set {change}: the form a.b=c is needed, as in plan.rounds=2")
    try:
        value = tomllib.loads(f"v = {text}")["v"]
    except tomllib.TOMLDecodeError:
        value = text
    *folders, last = path.strip().split(".")
    for folder in folders:
        table = table.setdefault(folder, {})
        if not isinstance(table, dict):
            raise MeadaError(f"--set {change}: '{folder}' is a value, not a table")
    table[last] = value


def _arguments(kind: str, table: Any, find: Find) -> dict[str, Any]:
    """The table with every default of the named function written out."""
    if not isinstance(table, dict) or not isinstance(table.get("name"), str):
        raise MeadaError(f"key '{kind}.name' is missing: a recipe names its {kind}")
    name = table["name"]
    model = _model(find(name))
    try:
        values = model(**{k: v for k, v in table.items() if k != "name"})
    except ValidationError as error:
        raise explain(model, error).under(kind) from None
    return {"name": name, **_without_none(values.model_dump())}


def _section(section: str, settings: type[Settings], table: Any) -> Settings:
    if isinstance(table, settings):
        return table
    if not isinstance(table, dict):
        raise MeadaError(f"key '{section}' is {table!r}: a table of settings is needed")
    try:
        return settings(**table)
    except BadSetting as fault:
        raise fault.under(section) from None


def _model(function: Callable[..., Any]) -> type[BaseModel]:
    """The function's own signature as a table of settings."""
    fields: dict[str, Any] = {
        name: (p.annotation, ... if p.default is inspect.Parameter.empty else p.default)
        for name, p in inspect.signature(function, eval_str=True).parameters.items()
        if p.kind is not inspect.Parameter.VAR_KEYWORD
        and name != "num_classes"  # a network's comes from the data
    }
    return create_model("Arguments", __config__=ConfigDict(extra="forbid"), **fields)


def _without_none(table: Mapping[str, Any]) -> dict[str, Any]:
    """TOML has no null: a key that is None is left out."""
    return {
        k: _without_none(v) if isinstance(v, dict) else list(v) if isinstance(v, tuple) else v
        for k, v in table.items()
        if v is not None
    }
