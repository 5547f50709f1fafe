"""Use with other libraries: hard views in their training loops, their augmentations as spaces, their trackers."""

from importlib import import_module
from typing import Any

_HOME = {
    "HardViews": "meada.integrations.lightning",
    "HardViewsMixin": "meada.integrations.views",
    "MLflow": "meada.integrations.tracking",
    "TensorBoard": "meada.integrations.tracking",
    "WeightsAndBiases": "meada.integrations.tracking",
    "harden_batch": "meada.integrations.views",
    "hardened": "meada.integrations.views",
    "space_from": "meada.integrations.callables",
}

__all__ = [*_HOME]  # found by __getattr__


def __getattr__(name: str) -> Any:
    """Import on first use, since no user needs all of the libraries."""
    if name not in _HOME:
        raise AttributeError(f"module 'meada.integrations' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)
