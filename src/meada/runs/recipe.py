"""Recipes: an experiment as a TOML file, read into validated, frozen settings."""

import tomllib
from collections.abc import Iterable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, Literal

import tomli_w
from pydantic import Field

from meada.algorithm import Plan
from meada.errors import MeadaError
from meada.files import read_text
from meada.lookup import Trusted
from meada.machine.device import Device, Precision
from meada.methods import Method
from meada.methods.parts.compose import augmented, compose
from meada.methods.parts.descent import Descent
from meada.runs import functions
from meada.runs.functions import make
from meada.runs.recipe_families import SHIPPED, family, merge, unknown_recipe
from meada.settings import BadSetting, Settings

SCALED_KEYS = ("train", "validation", "test")  # keys of a data set that count images


class PoolSettings(Settings):
    store: Literal["float32", "uint8"] = "float32"
    memory_mb: int = Field(2048, ge=0)  # above it, new blocks stay on disk
    keep: bool = False  # leave the pool's files in the run's folder when it is done


class EvaluationSettings(Settings):
    every: int = Field(200, ge=1)  # steps between candidates
    subset: int = Field(600, ge=1)  # images of each domain that score a candidate
    crafted: int = Field(200, ge=1)  # held-out source images under each crafted shift


class Recipe(Settings):
    """All settings of a run; ``data``, ``network`` and ``method`` name a function and its arguments."""

    name: str = Field(min_length=1, pattern=r"^[^\x00-\x1f\x7f]*$")
    note: str = ""
    seed: int = Field(0, ge=0, lt=2**63)
    data: dict[str, Any]
    network: dict[str, Any]
    method: dict[str, Any]
    loss: dict[str, Any] = {}  # a method whose minimisation phase takes the place of the method's
    augment: dict[str, Any] = {}  # how the minimisation phase sees a batch; the pool stays clean
    plan: Plan = Plan()
    descent: Descent = Descent()
    pool: PoolSettings = PoolSettings()
    evaluation: EvaluationSettings = EvaluationSettings()
    embedding: str = ""  # the submodule whose output is z; empty: the input of the last Linear
    device: Device = "auto"
    precision: Precision = "fp32"
    sync_batch_norm: bool = False  # over the batches of all processes (GPUs), not each one's share
    freeze_batch_norm: bool = False  # fine-tuning: use the statistics that came with the weights
    average_from: float = Field(1.0, ge=0, le=1)  # share of the steps after which weights are averaged; 1: never
    calibrate_on: str = ""  # a space: confidence is fitted on its views of held-out images; empty: never
    checkpoint_seconds: float = Field(60.0, ge=0)
    scaled: float = Field(1.0, gt=0, le=1)  # what part of its data, epochs and rounds is left


SECTIONS = {k: type(field.default) for k, field in Recipe.model_fields.items() if isinstance(field.default, Settings)}


def load_recipe(name: str, changes: list[str] | None = None, *, trust: Iterable[str] = (), **values: Any) -> Recipe:
    """A shipped recipe by its name, or a TOML file by its path, with ``a.b=c`` changes applied.

    ``scale``, among the changes or the values, keeps that part of its data, epochs and rounds. Code that the file
    names must be in ``trust``; names among the changes are the person's own.
    """
    table = load_table(changes or [], {"name": name.removesuffix(".toml"), **_read(name)}) | values
    scale = table.pop("scale", 1)
    recipe = resolve(table, trust)
    functions.refuse_disagreement(recipe.model_dump(), trust)
    functions.refuse_untrusted(recipe.model_dump())
    return scaled_down(recipe, scale)


def load_table(changes: list[str], base: dict[str, Any] | None = None) -> dict[str, Any]:
    """``a.b=c`` changes, applied to ``base`` or as a table of their own.

    >>> load_table(["plan.rounds=2", "network.name=lenet"])
    {'plan': {'rounds': 2}, 'network': {'name': 'lenet'}}
    """
    table: dict[str, Any] = {} if base is None else base
    for change in changes:
        _set(table, change)
    return table


def scaled_down(recipe: Recipe, scale: Any) -> Recipe:
    """The same experiment with a fraction of its data, epochs (or steps) and rounds; at least one of each."""
    if isinstance(scale, bool) or not isinstance(scale, int | float) or not 0 < scale <= 1:
        raise MeadaError(f"scale must be a number above 0 and at most 1, got {scale!r}")
    if scale == 1:
        return recipe
    part = lambda n: max(1, round(n * scale)) if n else 0
    sizes = {k: part(v) for k, v in recipe.data.items() if k in SCALED_KEYS and isinstance(v, int)}
    lengths = {k: part(getattr(recipe.plan, k)) for k in ("rounds", "min_steps", "total_steps")}
    return resolve({
        **recipe.model_dump(),
        "data": {**recipe.data, **sizes},
        "plan": {**recipe.plan.model_dump(), **lengths},
        "evaluation": {**recipe.evaluation.model_dump(), "every": part(recipe.evaluation.every)},
        "scaled": recipe.scaled * scale,
    })  # fmt: skip


def method_of(recipe: Recipe) -> Method:
    """The recipe's method, with the loss of another method and an augmentation if it names them."""
    method: Method = make("method", recipe.method)
    if recipe.loss:
        method = compose(loss=make("loss", recipe.loss), grow=method)
    return augmented(method, make("augment", recipe.augment)) if recipe.augment else method


def method_name(recipe: Recipe) -> str:
    """For records: ``meada``, or ``meada+mixup`` where the loss is another method's."""
    return "+".join(table["name"] for table in (recipe.method, recipe.loss) if table)


def resolve(table: Mapping[str, Any], trust: Iterable[str] = ()) -> Recipe:
    """The validated recipe with all defaults written out.

    Code that the table names is looked up if ``trust`` has its name, or the person gave it: see ``meada.lookup``.
    Otherwise its table stays as it is, nothing runs, and :func:`make` refuses it.
    """
    whole = dict(table)
    trust = [*trust, *(name for _, name in functions.code_in(whole) if isinstance(name, Trusted))]
    for kind in functions.KNOWN:
        if kind not in functions.OPTIONAL or whole.get(kind):
            whole[kind] = functions.with_defaults(kind, whole.get(kind), trust)
    for section, settings in SECTIONS.items():
        whole[section] = _section(section, settings, whole.get(section, {}))
    recipe = Recipe(**whole)
    if not functions.untrusted({kind: whole.get(kind) for kind in ("method", "loss", "augment")}):
        method_of(recipe)  # a method checks its own numbers: now, not in round 1
    return recipe


def to_toml(recipe: Recipe) -> str:
    return tomli_w.dumps(functions.without_none(recipe.model_dump()))


def from_toml(path: Path, trust: Iterable[str] = ()) -> Recipe:
    return resolve(parse_toml(path), trust)


def _read(name: str, inside: tuple[str, ...] = ()) -> dict[str, Any]:
    """A recipe's table merged over those that it extends; ``inside`` lists the recipes that extend it."""
    path = Path(name) if name.endswith(".toml") else SHIPPED / f"{name}.toml"
    if name in family(SHIPPED):
        return deepcopy(family(SHIPPED)[name])
    if "\0" in name or not path.is_file():
        raise unknown_recipe(name)
    table = parse_toml(path)
    parents = table.pop("extends", [])
    parents = [parents] if isinstance(parents, str) else parents
    if not isinstance(parents, list) or not all(isinstance(parent, str) for parent in parents):
        raise MeadaError(f"{path}: 'extends' must be a name or a list of names, got {parents!r:.80}")
    for parent in reversed(parents):
        if parent in (*inside, name):
            raise MeadaError(f"{path}: a recipe must not extend itself, got {' > '.join([*inside, name, parent])}")
        table = merge(_read(parent, (*inside, name)), table)
    return table


def parse_toml(path: Path) -> dict[str, Any]:
    text = read_text(path)
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # numbers of 5,000 digits and 100,000 brackets too
        raise MeadaError(f"{path} is not TOML: {error}") from None


def _set(table: dict[str, Any], change: str) -> None:
    """Apply one ``a.b=c``; the value is read as TOML, or as a plain string if it is not TOML."""
    path, sign, text = change.partition("=")
    if not sign or not path.strip():
        raise MeadaError(f"--set must have the form a.b=c, as in plan.rounds=2, got {change}")
    try:
        value = tomllib.loads(f"v = {text}")["v"]
    except (ValueError, RecursionError):
        value = text
    *folders, last = path.strip().split(".")
    if isinstance(value, str) and folders and last in ("name", "space"):
        value = Trusted(value)  # the person typed it
    for folder in folders:
        table = table.setdefault(folder, {})
        if not isinstance(table, dict):
            raise MeadaError(f"--set {change}: '{folder}' must be a table, got a value")
    table[last] = value


def _section(section: str, settings: type[Settings], table: Any) -> Settings:
    if isinstance(table, settings):
        return table
    if not isinstance(table, dict):
        raise MeadaError(f"key '{section}' must be a table of settings, got {table!r}")
    try:
        return settings(**table)
    except BadSetting as fault:
        raise fault.under(section) from None
