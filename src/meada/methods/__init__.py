"""Every method by the name that a recipe calls it by."""

from collections.abc import Callable

from meada.methods.erm import erm
from meada.methods.meada import ada, meada
from meada.methods.method import Method

__all__ = ["METHODS", "Method"]

METHODS: dict[str, Callable[..., Method]] = {
    "erm": erm,
    "ada": ada,
    "meada": meada,
}
