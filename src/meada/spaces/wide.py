"""The default prior: one of six kinds of change, blended with the clean image."""

from collections.abc import Callable, Sequence

from meada.errors import MeadaError, nearest
from meada.spaces.colour_curve import colour_curve
from meada.spaces.combine import one_of, skip_mix
from meada.spaces.filter import filter
from meada.spaces.operations import operations
from meada.spaces.random_convolution import random_convolution
from meada.spaces.space import Space
from meada.spaces.warp import warp
from meada.spaces.wave import wave

MEMBERS: dict[str, Callable[..., Space]] = {
    make.__name__: make for make in (random_convolution, colour_curve, filter, warp, wave, operations)
}


def wide(*, strength: float = 1.0, without: Sequence[str] = ()) -> Space:
    """Random convolutions, colour curves, filters, warps, waves and image operations, chosen uniformly.

    Args:
        strength: of every member.
        without: members to leave out, such as those that change colour where colour is the label.
    """
    for name in without:
        if name not in MEMBERS:
            raise MeadaError(f"without: unknown member '{name}': " + nearest(name, MEMBERS))
    chosen = [make(strength=strength) for name, make in MEMBERS.items() if name not in without]
    return skip_mix(one_of(*chosen, name="wide"))
