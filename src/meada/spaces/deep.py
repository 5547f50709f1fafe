"""A larger prior than ``wide``: several of its changes in a row, each blended with the image that it changes."""

from meada.errors import MeadaError
from meada.spaces.combine import chain
from meada.spaces.space import Space
from meada.spaces.wide import wide


def deep(*, strength: float = 1.0, depth: int = 3) -> Space:
    """``depth`` independent draws from :func:`wide`, one after another.

    For networks trained from scratch for long, which end up fitting every view of ``wide`` (decision 84).
    """
    if depth < 1:
        raise MeadaError(f"depth must be 1 or more, got {depth}")
    return chain(*[wide(strength=strength)] * depth, name="deep")
