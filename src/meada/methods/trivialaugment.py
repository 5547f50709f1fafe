"""TrivialAugment (Mueller and Hutter, 2021): one random operation per image, no setting to tune."""

from functools import partial

from torch import Tensor

from meada.images import tones, warps
from meada.methods.method import Method
from meada.methods.parts.views import random_views_loss
from meada.spaces.operations import Operation, one_operation

BINS = 31  # strengths 0, 1/30, ..., 1 of the range, all alike likely
# The authors' wide ranges at strength 1; nearest pixels, black outside.
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


def trivialaugment() -> Method:
    """Cross-entropy of the changed images alone, one operation per image at a random strength.

    The published ranges are meant for photographs: rotation goes up to 135 degrees, and translation up to 32
    pixels, which is the whole side of a digit.
    """
    space = one_operation(WIDE, "trivialaugment")
    return Method(
        loss=partial(random_views_loss, space=space, views=1, clean=False, consistency=0.0),
        families=space.families,
        title="TrivialAugment",
        about="Trains on images changed by one ordinary operation at a random strength.",
    )


def _bin(strength: Tensor) -> Tensor:
    """
    >>> import torch
    >>> (30 * _bin(torch.tensor([-1.0, -0.97, 0.0, 0.03, 0.04, 0.9999]))).round()
    tensor([-30., -30.,   0.,   0.,   1.,  30.])
    """
    return strength.sign() * (strength.abs() * BINS).floor().clamp(max=BINS - 1) / (BINS - 1)
