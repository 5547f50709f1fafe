"""Validation shifts pixel by pixel: tone (the same curve for every channel) and colour."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from meada.evaluation.validation_shifts.random_numbers import outside_middle, uniform
from meada.streams import Streams
from meada.types import Images

LUMA = (0.299, 0.587, 0.114)  # ITU-R BT.601
# Red, green, blue to luma and two chroma axes (NTSC's YIQ): a turn of the last two is a turn of hue.
TO_YIQ = ((0.299, 0.587, 0.114), (0.5959, -0.2746, -0.3213), (0.2115, -0.5227, 0.3112))


def invert(x: Images, rng: Streams) -> Images:
    return 1 - x


def fold(x: Images, rng: Streams) -> Images:
    """Levels below a threshold run backwards: solarisation of the dark half."""
    threshold = uniform(rng, x, 0.4, 0.6)
    return torch.where(x < threshold, threshold - x, x)


def gamma(x: Images, rng: Streams) -> Images:
    """To the power of 1/4 to 1/2 or of 2 to 4."""
    return x ** outside_middle(rng, x, math.log(2), math.log(4)).exp()


def posterise(x: Images, rng: Streams) -> Images:
    """Two or three levels per channel."""
    steps = uniform(rng, x, 1.0, 3.0).floor()
    return (x * steps).round() / steps


def tint(x: Images, rng: Streams) -> Images:
    """Each channel pulled halfway towards a level of its own."""
    return 0.5 * x + 0.5 * uniform(rng, x, 0.0, 1.0, x.shape[1], 1, 1)


def cast(x: Images, rng: Streams) -> Images:
    """Light of one colour: each channel times its own factor, the largest of them 1."""
    factor = uniform(rng, x, 0.1, 1.0, x.shape[1], 1, 1)
    return x * (factor / factor.amax(1, keepdim=True))


def duotone(x: Images, rng: Streams) -> Images:
    """Luma drawn between a dark and a light colour."""
    dark = uniform(rng, x, 0.0, 0.4, x.shape[1], 1, 1)
    light = uniform(rng, x, 0.5, 1.0, x.shape[1], 1, 1, lane=1)
    return dark + luma(x) * (light - dark)


def hue(x: Images, rng: Streams) -> Images:
    """Turned by 60 to 300 degrees; an image without colour stays as it is."""
    if x.shape[1] != 3:
        return x
    angle = uniform(rng, x, math.pi / 3, 5 * math.pi / 3).flatten()
    cos, sin, zero, one = angle.cos(), angle.sin(), torch.zeros_like(angle), torch.ones_like(angle)
    turn = torch.stack([one, zero, zero, zero, cos, -sin, zero, sin, cos], 1).view(-1, 3, 3)
    basis = torch.tensor(TO_YIQ).to(x)
    return torch.einsum("bij,bjhw->bihw", torch.linalg.inv(basis) @ turn @ basis, x)


def luma(x: Images) -> Float[Tensor, "B 1 H W"]:
    """Brightness, in one channel."""
    if x.shape[1] != 3:
        return x.mean(1, keepdim=True)
    return (x * torch.tensor(LUMA).to(x).view(1, 3, 1, 1)).sum(1, keepdim=True)
