"""The functions that a recipe names (data set, network, method, loss, augmentation) and their arguments."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from torch import nn

from meada.datasets import DATASETS, Task
from meada.errors import MeadaError
from meada.lookup import Trusted, accepting, call, first_line, is_code, lookup, needs_code, trusted
from meada.methods import METHODS, Method
from meada.methods.parts.compose import AUGMENTS
from meada.networks import NETWORKS
from meada.networks.pretrained import timm_network
from meada.settings import explain, signature_model

KNOWN: dict[str, Mapping[str, Callable[..., Any]]] = {
    "data": DATASETS,
    "network": NETWORKS,
    "method": METHODS,
    "loss": METHODS,
    "augment": AUGMENTS,
}
NAMES = ("name", "space")  # the keys of a table that may name code
OPTIONAL = ("loss", "augment")
TITLES = {"data": "data set", "loss": "method", "augment": "augmentation"}
GIVES: dict[str, type] = {"data": Task, "network": nn.Module, "method": Method, "loss": Method}
MAKERS = {"network": {"timm": timm_network}}
# Arguments of whatever a recipe names, by what they are called, and the least that makes sense.
MINIMUM = {"beta": 0, "gamma": 0, "step_size": 0, "steps": 0, "block": 1}
# Next to any network's own arguments: a file below the data folder's ``weights``, and whether it may
# leave some of the network at random. ``meada.runs.network`` reads them.
WEIGHTS: dict[str, Any] = {"weights": (str | None, None), "partial": (bool | None, None)}


def find(kind: str, name: str, trust: Iterable[str] = ()) -> Callable[..., Any]:
    """The function that a recipe's table of this kind names.

    >>> find("network", "lenet")(num_classes=7)[-1].out_features
    7
    """
    title = TITLES.get(kind, kind)
    found = lookup(title, name, KNOWN[kind], trust=trust, makers=MAKERS.get(kind, {}))
    return accepting(found, "num_classes") if kind == "network" else found


def make(kind: str, table: Mapping[str, Any], **more: Any) -> Any:
    """Call the function that ``table`` names with the arguments in it."""
    arguments = dict(table)
    name = arguments.pop("name")
    function = find(kind, name)
    # The weights of built-in networks come from an installed package, checked by its digest.
    if arguments.get("pretrained") and name not in NETWORKS and not isinstance(name, Trusted):
        raise MeadaError(f"'{name}' with pretrained = true downloads weights; pass --{kind} {name} to allow it")
    made = call(kind, name, function, **arguments, **more)
    wanted = GIVES.get(kind, object)
    if not isinstance(made, wanted):
        raise MeadaError(f"{kind} '{name}' must give a {wanted.__name__}, got {type(made).__name__}")
    return made


def code_in(tables: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Kind and name of all code outside the package that a recipe names."""
    for kind, known in KNOWN.items():
        table = tables.get(kind)
        if isinstance(table, Mapping):
            name, space = table.get("name", ""), table.get("space", "")
            if is_code(name, known, MAKERS.get(kind, ())):
                yield kind, name
            if is_code(space):
                yield "space", space


def untrusted(tables: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(kind, name) for kind, name in code_in(tables) if not isinstance(name, Trusted)]


def refuse_untrusted(tables: Mapping[str, Any]) -> None:
    for kind, name in untrusted(tables):
        raise MeadaError(needs_code(TITLES.get(kind, kind), name))


def refuse_disagreement(tables: Mapping[str, Any], trust: Iterable[str]) -> None:
    """Refuse a name from the user that the recipe does not contain."""
    held = [table[key] for table in tables.values() if isinstance(table, Mapping) for key in NAMES if key in table]
    for given in trust:
        if not any(isinstance(trusted(str(name), [given]), Trusted) for name in held):
            names = ", ".join(str(name) for name in held)
            raise MeadaError(
                f"--trust {given} must be a name in the recipe, got {names}: it only permits code; to use it, give "
                f"--set method.space={given}, or network.name, method.name or data.name"
            )


def with_defaults(kind: str, table: Any, trust: Iterable[str]) -> dict[str, Any]:
    """The table with every default of the named function written out; left as it is if that would run code."""
    if not isinstance(table, dict) or not isinstance(table.get("name"), str):
        raise MeadaError(f"key '{kind}.name' is missing: a recipe names its {kind}")
    table = table | {key: trusted(table[key], trust) for key in NAMES if isinstance(table.get(key), str)}
    if untrusted({kind: table}):
        return table
    name = table["name"]
    model = _model(kind, name, find(kind, name), WEIGHTS if kind == "network" else {})
    try:
        values = model(**{k: v for k, v in table.items() if k != "name"})
    except ValidationError as error:
        raise explain(model, error).under(kind) from None
    _check_minimum(kind, values.model_dump())
    space = {"space": table["space"]} if isinstance(table.get("space"), Trusted) else {}
    return {"name": name, **without_none(values.model_dump()), **space}


def _model(kind: str, name: str, function: Callable[..., Any], more: Mapping[str, Any]) -> type[BaseModel]:
    """The function's own signature, and what may stand next to it, as a table of settings."""
    try:
        parameters = inspect.signature(function, eval_str=True).parameters
    except Exception as error:  # a builtin has none; an annotation may name anything
        raise MeadaError(f"{kind} '{name}' must be a function with a signature, got {first_line(error)}") from None
    try:
        return signature_model(parameters, more)
    except Exception as error:  # an annotation that is no type, a name that pydantic keeps for itself
        raise MeadaError(f"{kind} '{name}' has arguments that cannot be settings: {first_line(error)}") from None


def _check_minimum(kind: str, values: Mapping[str, Any]) -> None:
    for key, low in MINIMUM.items():
        found = values.get(key)
        numbers = found if isinstance(found, list | tuple) else [found]
        if any(isinstance(number, int | float) and not number >= low for number in numbers):
            raise MeadaError(f"key '{kind}.{key}' must be {low} or more, got {found!r}")


def without_none(table: Mapping[str, Any]) -> dict[str, Any]:
    """TOML has no null: a key that is None is left out."""
    return {
        k: without_none(v) if isinstance(v, dict) else list(v) if isinstance(v, tuple) else v
        for k, v in table.items()
        if v is not None
    }
