"""Spaces of image transformations: what the inner maximisation searches."""

from collections.abc import Callable, Sequence

from meada.errors import MeadaError, nearest
from meada.lookup import lookup
from meada.spaces.combine import chain, one_of, skip_mix
from meada.spaces.operations import operations
from meada.spaces.pixels import pixels
from meada.spaces.prime import colour_curve, filter, warp
from meada.spaces.random_convolution import random_convolution
from meada.spaces.space import Random, Space, Theta, view_random
from meada.spaces.wave import wave

__all__ = ["SPACES", "Random", "Space", "Theta", "chain", "find_space", "one_of", "skip_mix", "view_random"]


def wide(*, strength: float = 1.0, without: Sequence[str] = ()) -> Space:
    """The default prior: one of six kinds of change, uniform, blended with the clean image.

    Args:
        strength: of every member.
        without: members to leave out, such as those that change colour where colour is the label.
    """
    for name in without:
        if name not in MEMBERS:
            raise MeadaError(f"without: unknown member '{name}': " + nearest(name, MEMBERS))
    chosen = [make(strength=strength) for name, make in MEMBERS.items() if name not in without]
    return skip_mix(one_of(*chosen, name="wide"))


SPACES: dict[str, Callable[..., Space]] = {  # the command line reads the names without an import
    "pixels": pixels,
    "random_convolution": random_convolution,
    "colour_curve": colour_curve,
    "filter": filter,
    "warp": warp,
    "wave": wave,
    "operations": operations,
    "wide": wide,
}
MEMBERS = {name: make for name, make in SPACES.items() if name not in ("pixels", "wide")}


def find_space(space: str | Space) -> Space:
    """A space by its name in ``SPACES``, by FILE.py:function that a person named, or the space itself."""
    if isinstance(space, Space):
        return space
    if not isinstance(space, str):
        hint = ": meada.integrations.space_from makes a space of it" if callable(space) else ""
        raise MeadaError(f"space must be a name or a meada.Space, got {type(space).__name__}{hint}")
    made = lookup("space", space, SPACES)()
    if not isinstance(made, Space):
        raise MeadaError(f"space '{space}' must return a meada.Space, got {type(made).__name__}")
    return made
