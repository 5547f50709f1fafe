"""A network by its name, or somebody's own by the file or module that its function is in."""

import importlib
import importlib.util
import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import ModuleType

from torch import nn

from meada.errors import MeadaError, nearest
from meada.networks import NETWORKS
from meada.networks.pretrained.timm_models import timm_network

FORMS = "FILE.py:function, module:function or timm:NAME"


def network(name: str) -> Callable[..., nn.Module]:
    """The function that makes the network; it takes ``num_classes``.

    >>> network("lenet")(num_classes=7)[-1].out_features
    7
    """
    if name in NETWORKS:
        return NETWORKS[name]
    place, colon, function = name.rpartition(":")
    if not colon or not place:
        raise MeadaError(f"unknown network '{name}': {nearest(name, NETWORKS)} (or {FORMS})")
    if place == "timm":
        return timm_network(function)
    module = _from_file(name, Path(place)) if place.endswith(".py") else _imported(name, place)
    made = getattr(module, function, None)
    if not callable(made):
        raise MeadaError(f"network '{name}': {place} has no function '{function}'")
    return _for_classes(made)


def _from_file(name: str, path: Path) -> ModuleType:
    if not path.is_file():
        raise MeadaError(f"network '{name}': there is no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever somebody's file does
        raise MeadaError(f"network '{name}': {path} fails with {_what(error)}") from error
    return module


def _imported(name: str, place: str) -> ModuleType:
    try:
        return importlib.import_module(place)
    except Exception as error:
        raise MeadaError(f"network '{name}': importing {place} fails with {_what(error)}") from error


def _for_classes(made: Callable[..., nn.Module]) -> Callable[..., nn.Module]:
    """A function with a number of classes of its own is not told of another."""
    try:
        parameters = inspect.signature(made).parameters
    except (TypeError, ValueError):
        return made
    kinds = {p.kind for p in parameters.values()}
    if "num_classes" in parameters or inspect.Parameter.VAR_KEYWORD in kinds:
        return made

    @wraps(made)
    def without(*, num_classes: int, **arguments: object) -> nn.Module:
        return made(**arguments)

    return without


def _what(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
