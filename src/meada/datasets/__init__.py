"""All data sets by their names in recipes; each is a function that returns a :class:`Task`."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from meada.datasets.cifar import CIFAR10, CIFAR100, cifar10, cifar100, cifar_sizes
from meada.datasets.digits import digits, digits_sizes
from meada.datasets.domains import domains, domains_sizes, pacs, pacs_sizes
from meada.datasets.embedded import embedded, embedded_sizes
from meada.datasets.folder import folder
from meada.datasets.task import Samples, Sizes, Task
from meada.errors import MeadaError

DATASETS: dict[str, Callable[..., Task]] = {
    "embedded": embedded,
    "digits": digits,
    "cifar10": cifar10,
    "cifar100": cifar100,
    "pacs": pacs,
    "domains": domains,
    "folder": folder,
}

# The same arguments; a data set that is not here has to be read before its sizes are known.
SIZES: dict[str, Callable[..., Sizes]] = {
    "embedded": embedded_sizes,
    "digits": digits_sizes,
    "cifar10": partial(cifar_sizes, CIFAR10),
    "cifar100": partial(cifar_sizes, CIFAR100),
    "pacs": pacs_sizes,
    "domains": domains_sizes,
}


def sizes_of(data: Mapping[str, Any]) -> Sizes | None:
    """Of a recipe's data table, without reading an image; None: not known here.

    >>> sum(sizes_of({"name": "embedded"}).targets.values())
    5000
    """
    arguments = dict(data)
    try:
        return SIZES[arguments.pop("name")](**arguments)
    except (KeyError, MeadaError, OSError):
        return None


__all__ = ["DATASETS", "SIZES", "Samples", "Sizes", "Task", "sizes_of"]
