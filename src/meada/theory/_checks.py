"""What the propositions presuppose, checked at the door."""

import math
from operator import index

from torch import Tensor

from meada.errors import MeadaError

Real = float | int  # a whole number is a number: beartype tells the two apart, Python does not

SUM_TOLERANCE = 1e-2  # wide enough for a softmax in bfloat16, far too narrow for logits


def check_law(p: Tensor, what: str, dims: int = 1) -> None:
    """The last ``dims`` dimensions of ``p`` hold probabilities that sum to one."""
    if p.numel() == 0:
        raise MeadaError(f"{what} is empty: an entropy needs at least one prediction")
    if not bool((p >= 0).all()):  # also catches NaN
        raise MeadaError(f"{what} holds a negative number or a NaN: give softmax(logits), not logits")
    worst = float((p.sum(tuple(range(-dims, 0))) - 1).abs().max())
    if not worst <= SUM_TOLERANCE:
        raise MeadaError(f"{what} is off by {worst:.3g} from a sum of 1: give softmax(logits)")


def check_count(value: int, what: str, least: int = 1) -> int:
    """``value`` as a Python integer, at least ``least``."""
    count = index(value)  # a numpy integer is welcome, 3.5 is a TypeError
    if count < least:
        raise MeadaError(f"{what} = {count} is too small: it must be at least {least}")
    return count


def check_between(value: Real, low: Real, high: Real, what: str) -> None:
    """``low <= value <= high``, both ends included."""
    if not low <= value <= high:
        raise MeadaError(f"{what} = {value} is outside [{low:g}, {high:g}]")


def check_delta(delta: Real) -> None:
    if not 0 < delta < 1:
        raise MeadaError(f"delta = {delta} is not a probability strictly between 0 and 1")


def check_error(error: Real) -> None:
    if math.isnan(error) or error <= 0:
        raise MeadaError(f"error = {error} must be above 0 nats: no finite sample reaches it")
