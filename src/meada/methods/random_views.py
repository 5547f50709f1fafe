"""RandConv, PRIME and TrivialAugment: train on random views from a space, with similar predictions for several."""

from functools import partial

from torch import Tensor

from meada.errors import check_range
from meada.images import tones, warps
from meada.methods.method import Method
from meada.methods.parts.views import random_views_loss
from meada.spaces import Space, skip_mix
from meada.spaces.colour_curve import colour_curve
from meada.spaces.filter import filter
from meada.spaces.mixture import mixture
from meada.spaces.operations import Operation, one_operation
from meada.spaces.random_convolution import random_convolution
from meada.spaces.warp import warp


def randconv(*, consistency: float = 10.0, bank: int = 1) -> Method:
    """Xu et al., 2021: cross-entropy of one view plus ``consistency`` times the divergence of three; no clean image.

    Args:
        consistency: the authors' 10 for views blended with the image.
        bank: kernels per view and step; 1 is the authors', one kernel for the whole batch.
    """
    check_range("randconv", "[0, inf)", consistency=consistency, bank=bank)
    about = "Trains on images under random convolutions, and asks for the same prediction under three of them."
    return _on_views(
        skip_mix(random_convolution(bank=bank)), views=3, consistency=consistency, title="RandConv", about=about
    )


def prime(*, width: int = 3, depth: int = 3, consistency: float = 12.0) -> Method:
    """Modas et al., 2022: cross-entropy of the clean image plus its divergence from two mixed copies.

    Args:
        width: chains mixed into a copy.
        depth: transformations in a chain, from 1 up to this many.
        consistency: weight of the divergence.
    """
    check_range("prime", "[0, inf)", consistency=consistency)
    space = mixture(filter(), colour_curve(), warp(), width=width, depth=depth)
    about = "Trains on clean images and asks for the same prediction under mixed filters, colour curves and warps."
    return _on_views(space, views=2, clean=True, consistency=consistency, title="PRIME", about=about)


def trivialaugment() -> Method:
    """Mueller and Hutter, 2021: cross-entropy of the changed images alone, one random operation per image.

    The published ranges are meant for photographs: rotation goes up to 135 degrees, and translation up to 32
    pixels, which is the whole side of a digit.
    """
    about = "Trains on images changed by one ordinary operation at a random strength."
    return _on_views(one_operation(WIDE, "trivialaugment"), views=1, title="TrivialAugment", about=about)


def _on_views(
    space: Space, *, views: int, clean: bool = False, consistency: float = 0.0, title: str, about: str
) -> Method:
    passes = float(views + clean)
    return Method(
        loss=partial(random_views_loss, space=space, views=views, clean=clean, consistency=consistency),
        families=space.families,
        title=title,
        about=about,
        passes=(passes, passes),
    )


def _bin(strength: Tensor) -> Tensor:
    """Strengths are multiples of 1/30 of the range."""
    return (strength * 30).round() / 30


# TrivialAugment's wide ranges at strength 1; nearest pixels, black outside.
WIDE: dict[str, Operation] = {
    "identity": lambda v, s: v,
    "shear_x": lambda v, s: warps.shear_x(v, 0.99 * _bin(s)),
    "shear_y": lambda v, s: warps.shear_y(v, 0.99 * _bin(s)),
    "translate_x": lambda v, s: warps.translate_x(v, 32 * _bin(s)),
    "translate_y": lambda v, s: warps.translate_y(v, 32 * _bin(s)),
    "rotate": lambda v, s: warps.rotate(v, 135 * _bin(s)),
    "brightness": lambda v, s: tones.brightness(v, 1 + 0.99 * _bin(s)),
    "colour": lambda v, s: tones.colour(v, 1 + 0.99 * _bin(s)),
    "contrast": lambda v, s: tones.contrast(v, 1 + 0.99 * _bin(s)),
    "sharpness": lambda v, s: tones.sharpness(v, 1 + 0.99 * _bin(s)),
    "posterise": lambda v, s: tones.posterise(v, 8 - (6 * _bin(s).abs()).round()),
    "solarise": lambda v, s: tones.solarise(v, 255 * (1 - _bin(s).abs())),
    "autocontrast": lambda v, s: tones.autocontrast(v),
    "equalise": lambda v, s: tones.equalise(v),
}
