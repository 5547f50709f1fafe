"""Check the assumptions of the propositions on their arguments."""

from operator import index

from torch import Tensor

from meada.errors import MeadaError

Real = float | int  # beartype distinguishes int from float

SUM_TOLERANCE = 1e-2  # wide enough for a softmax in bfloat16, far too narrow for logits


def check_law(p: Tensor, what: str, dims: int = 1) -> None:
    """The last ``dims`` dimensions of ``p`` hold probabilities that sum to one."""
    if p.numel() == 0:
        raise MeadaError(f"{what} must hold at least one prediction, got none")
    if not bool((p >= 0).all()):  # also catches NaN
        raise MeadaError(f"{what} must be probabilities, got a negative number or NaN: give softmax(logits)")
    worst = float((p.sum(tuple(range(-dims, 0))) - 1).abs().max())
    if not worst <= SUM_TOLERANCE:
        raise MeadaError(f"{what} must sum to 1, got sums off by {worst:.3g}: give softmax(logits)")


def check_count(value: int, what: str, least: int = 1) -> int:
    """``value`` as a Python integer, at least ``least``."""
    count = index(value)  # a numpy integer is welcome, 3.5 is a TypeError
    if count < least:
        raise MeadaError(f"{what} must be at least {least}, got {count}")
    return count
