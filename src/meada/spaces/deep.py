"""A larger prior than ``wide``: several of its changes in a row, each blended with the image that it changes."""

from meada.errors import check_count
from meada.spaces.combine import chain
from meada.spaces.space import Space
from meada.spaces.wide import wide


def deep(*, strength: float = 1.0, depth: int = 3) -> Space:
    """``depth`` independent draws from :func:`wide`, one after another.

    For networks trained from scratch for long, which end up fitting every view of ``wide`` (decision 84).
    """
    check_count("depth", depth, least=1)
    return chain(*[wide(strength=strength)] * depth, name="deep")
