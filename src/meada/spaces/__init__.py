"""Spaces of image transformations, over which the inner maximisation searches."""

from collections.abc import Callable

from meada.errors import MeadaError
from meada.lookup import Trusted, call, is_code, lookup
from meada.spaces.colour_curve import colour_curve
from meada.spaces.combine import chain, one_of, skip_mix
from meada.spaces.deep import deep
from meada.spaces.filter import filter
from meada.spaces.operations import operations
from meada.spaces.pixels import pixels
from meada.spaces.random_convolution import random_convolution
from meada.spaces.space import Random, Space, Theta, view_random
from meada.spaces.warp import warp
from meada.spaces.wave import wave
from meada.spaces.wide import wide

__all__ = ["SPACES", "Random", "Space", "Theta", "chain", "find_space", "one_of", "skip_mix", "view_random"]

SPACES: dict[str, Callable[..., Space]] = {
    "pixels": pixels,
    "random_convolution": random_convolution,
    "colour_curve": colour_curve,
    "filter": filter,
    "warp": warp,
    "wave": wave,
    "operations": operations,
    "wide": wide,
    "deep": deep,
}


def find_space(space: str | Space) -> Space:
    """A space by its name in ``SPACES`` or, on the command line, by FILE.py:function; or the space itself."""
    if isinstance(space, Space):
        return space
    if not isinstance(space, str):
        hint = ": call it if it returns a Space; else meada.integrations.space_from makes a space of it"
        raise MeadaError(
            f"space must be a name or a meada.Space, got {type(space).__name__}{hint if callable(space) else ''}"
        )
    if is_code(space, SPACES) and not isinstance(space, Trusted):
        raise MeadaError(f"space must be a name in meada.SPACES or a meada.Space, got '{space}': import the function")
    made = call("space", space, lookup("space", space, SPACES))
    if not isinstance(made, Space):
        raise MeadaError(f"space '{space}' must return a meada.Space, got {type(made).__name__}")
    return made
