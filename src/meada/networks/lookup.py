"""A network by its name, or somebody's own by ``FILE.py:function``."""

import importlib.util
from collections.abc import Callable
from pathlib import Path

from torch import nn

from meada.errors import MeadaError, nearest
from meada.networks import NETWORKS


def network(name: str) -> Callable[..., nn.Module]:
    """The function that makes the network; it takes ``num_classes``.

    >>> network("lenet")(num_classes=7)[-1].out_features
    7
    """
    if name in NETWORKS:
        return NETWORKS[name]
    file, colon, function = name.rpartition(":")
    if not colon or not file.endswith(".py"):
        raise MeadaError(
            f"unknown network '{name}': {nearest(name, NETWORKS)} (or FILE.py:function)"
        )
    path = Path(file)
    if not path.is_file():
        raise MeadaError(f"network '{name}': there is no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = getattr(module, function, None)
    if not callable(made):
        raise MeadaError(f"network '{name}': {path} has no function '{function}'")
    return made
