"""Every data set by the name that a recipe calls it by; each returns a :class:`Task`."""

from collections.abc import Callable

from meada.datasets.cifar import cifar10, cifar100
from meada.datasets.digits import digits
from meada.datasets.domains import domains
from meada.datasets.embedded import embedded
from meada.datasets.folder import folder
from meada.datasets.pacs import pacs
from meada.datasets.task import Samples, Task

DATASETS: dict[str, Callable[..., Task]] = {
    "embedded": embedded,
    "digits": digits,
    "cifar10": cifar10,
    "cifar100": cifar100,
    "pacs": pacs,
    "domains": domains,
    "folder": folder,
}

__all__ = ["DATASETS", "Samples", "Task"]
