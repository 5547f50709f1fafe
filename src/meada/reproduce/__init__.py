"""Sets of runs: the paper's tables and figures; each run is identified by its recipe and run once."""

from meada.reproduce.cost import expected_seconds, megabytes, time_left
from meada.reproduce.item import Item
from meada.reproduce.runner import Outcome, reproduce
from meada.reproduce.sets import SETS, digits, figure1, items_of
from meada.reproduce.trials import tried_seconds

__all__ = [
    "SETS",
    "Item",
    "Outcome",
    "digits",
    "expected_seconds",
    "figure1",
    "items_of",
    "megabytes",
    "reproduce",
    "time_left",
    "tried_seconds",
]
