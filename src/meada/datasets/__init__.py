"""Every data set by the name that a recipe calls it by; each returns a :class:`Task`."""

from collections.abc import Callable, Sequence

from meada.datasets.cifar import cifar10, cifar100
from meada.datasets.digits import digits
from meada.datasets.domains import domains
from meada.datasets.embedded import embedded
from meada.datasets.folder import folder
from meada.datasets.pacs import pacs
from meada.datasets.printed_numbers import printed_numbers
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

# Tried apart from a recipe's own domains: stand-ins, which count in no mean. They are given the
# classes of what is tried, and refuse those that they do not show.
APART: dict[str, Callable[[Sequence[str]], Samples]] = {"printed_numbers": printed_numbers}

__all__ = ["APART", "DATASETS", "Samples", "Task"]
