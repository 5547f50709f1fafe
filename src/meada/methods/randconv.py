"""RandConv (Xu et al., 2021): train on randomly convolved images, with consistent predictions."""

from functools import partial

from meada.errors import check_range
from meada.methods.method import Method
from meada.methods.parts.views import random_views_loss
from meada.spaces import skip_mix
from meada.spaces.random_convolution import random_convolution


def randconv(*, consistency: float = 10.0, bank: int = 1) -> Method:
    """Cross-entropy of one view plus ``consistency`` times the divergence of three; no clean image.

    Args:
        consistency: the authors' 10 for views blended with the image.
        bank: kernels per view and step; 1 is the authors', one kernel for the whole batch.
    """
    check_range("randconv", "[0, inf)", consistency=consistency, bank=bank)
    space = skip_mix(random_convolution(bank=bank))
    return Method(
        loss=partial(random_views_loss, space=space, views=3, clean=False, consistency=consistency),
        families=space.families,
        title="RandConv",
        about="Trains on images under random convolutions, and asks for the same prediction under three of them.",
        passes=(3.0, 3.0),
    )
