"""PRIME (Modas et al., 2022): mixtures of random filters, colour curves and warps."""

from functools import partial

from meada.errors import check_range
from meada.methods.method import Method
from meada.methods.parts.views import random_views_loss
from meada.spaces.combine import mixture
from meada.spaces.prime import colour_curve, filter, warp


def prime(*, width: int = 3, depth: int = 3, consistency: float = 12.0) -> Method:
    """Cross-entropy of the clean image plus ``consistency`` times its divergence from two mixed copies.

    Args:
        width: chains mixed into a copy.
        depth: transformations in a chain, from 1 up to this many.
        consistency: weight of the divergence.
    """
    check_range("prime", "[0, inf)", consistency=consistency)
    space = mixture(filter(), colour_curve(), warp(), width=width, depth=depth)
    return Method(
        loss=partial(random_views_loss, space=space, views=2, clean=True, consistency=consistency),
        families=space.families,
        title="PRIME",
        about="Trains on clean images and asks for the same prediction under mixed filters, colour curves and warps.",
        passes=(3.0, 3.0),
    )
