"""Every data set by the name that a recipe calls it by; each returns a :class:`Task`."""

from collections.abc import Callable

from meada.datasets.digits import digits
from meada.datasets.embedded import embedded
from meada.datasets.task import Samples, Task

DATASETS: dict[str, Callable[..., Task]] = {
    "embedded": embedded,
    "digits": digits,
}

__all__ = ["DATASETS", "Samples", "Task"]
