"""Validation shifts of tone, colour, geometry (pixels move) and occlusion (pixels are covered)."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, from_numpy
from torch.nn.functional import grid_sample

from meada.streams import Streams
from meada.types import Images


def uniform(rng: Streams, x: Images, low: float, high: float, *shape: int, lane: int = 0) -> Tensor:
    """Uniform on [low, high) of shape (B, *shape); (B, 1, 1, 1) if no shape is given."""
    return from_numpy(rng.uniform(shape or (1, 1, 1), low, high, lane=lane)).to(x)


def normal(rng: Streams, x: Images, *shape: int, lane: int = 0) -> Tensor:
    """Standard normal of shape (B, *shape)."""
    return from_numpy(rng.normal(shape, lane=lane)).to(x)


def outside_middle(rng: Streams, x: Images, least: float, most: float, *shape: int, lane: int = 0) -> Tensor:
    """Of either sign, its size uniform on [least, most): a shift that is never next to nothing."""
    u = uniform(rng, x, -1.0, 1.0, *shape, lane=lane)
    return u.sign() * least + u * (most - least)


LUMA = (0.299, 0.587, 0.114)  # ITU-R BT.601
# Red, green, blue to luma and two chroma axes (NTSC's YIQ): a turn of the last two is a turn of hue.
TO_YIQ = ((0.299, 0.587, 0.114), (0.5959, -0.2746, -0.3213), (0.2115, -0.5227, 0.3112))


def invert(x: Images, rng: Streams) -> Images:
    return 1 - x


def fold(x: Images, rng: Streams) -> Images:
    """Invert levels below a threshold: solarisation of the dark half."""
    threshold = uniform(rng, x, 0.4, 0.6)
    return torch.where(x < threshold, threshold - x, x)


def gamma(x: Images, rng: Streams) -> Images:
    """Gamma correction by an exponent of 1/4 to 1/2 or of 2 to 4."""
    return x ** outside_middle(rng, x, math.log(2), math.log(4)).exp()


def posterise(x: Images, rng: Streams) -> Images:
    """Quantise to two or three levels per channel."""
    steps = uniform(rng, x, 1.0, 3.0).floor()
    return (x * steps).round() / steps


def tint(x: Images, rng: Streams) -> Images:
    """Blend each channel half with a random level."""
    return 0.5 * x + 0.5 * uniform(rng, x, 0.0, 1.0, x.shape[1], 1, 1)


def cast(x: Images, rng: Streams) -> Images:
    """Coloured light: multiply each channel by a random factor, the largest of which is 1."""
    factor = uniform(rng, x, 0.1, 1.0, x.shape[1], 1, 1)
    return x * (factor / factor.amax(1, keepdim=True))


def duotone(x: Images, rng: Streams) -> Images:
    """Map the luma to a line between a dark and a light colour."""
    dark = uniform(rng, x, 0.0, 0.4, x.shape[1], 1, 1)
    light = uniform(rng, x, 0.5, 1.0, x.shape[1], 1, 1, lane=1)
    return dark + luma(x) * (light - dark)


def hue(x: Images, rng: Streams) -> Images:
    """Rotate the hue by 60 to 300 degrees; grey images do not change."""
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


def rotate(x: Images, rng: Streams) -> Images:
    """Rotate by 10 to 30 degrees either way."""
    angle = outside_middle(rng, x, math.pi / 18, math.pi / 6)
    column, row = places(x)
    return read(x, angle.cos() * column - angle.sin() * row, angle.sin() * column + angle.cos() * row)


def shear(x: Images, rng: Streams) -> Images:
    column, row = places(x)
    return read(x, column + outside_middle(rng, x, 0.15, 0.4) * row, row)


def rescale(x: Images, rng: Streams) -> Images:
    """Zoom in by up to 1.4 or out by down to 0.6, on black."""
    factor = torch.where(uniform(rng, x, 0.0, 1.0) < 0.5, 1 / uniform(rng, x, 0.6, 0.85, lane=1), 1 / 1.4)
    column, row = places(x)
    return read(x, column * factor, row * factor)


def tilt(x: Images, rng: Streams) -> Images:
    """Perspective transform along both axes."""
    column, row = places(x)
    across, down = outside_middle(rng, x, 0.15, 0.35), outside_middle(rng, x, 0.15, 0.35, lane=1)
    depth = 1 + across * column + down * row
    return read(x, column / depth, row / depth)


def places(x: Images) -> tuple[Tensor, Tensor]:
    """Columns and rows of the pixels' centres, the image's edges at -1 and 1."""
    row, column = ((2 * torch.arange(n).to(x) + 1) / n - 1 for n in x.shape[2:])
    return column.expand(1, 1, *x.shape[2:]), row[:, None].expand(1, 1, *x.shape[2:])


def read(x: Images, column: Tensor, row: Tensor, beyond: str = "zeros") -> Images:
    """Sample the image at the given positions by bilinear interpolation."""
    shape = (len(x), 1, *x.shape[2:])
    grid = torch.cat([column.expand(shape), row.expand(shape)], 1).permute(0, 2, 3, 1)
    return grid_sample(x, grid, padding_mode=beyond, align_corners=False)


def square(x: Images, rng: Streams) -> Images:
    """Cover a random square, a third as wide as the image, with grey."""
    height, width = x.shape[2:]
    sides = (max(height // 3, 1), max(width // 3, 1))
    top = (uniform(rng, x, 0.0, 1.0) * (height - sides[0] + 1)).floor()
    left = (uniform(rng, x, 0.0, 1.0, lane=1) * (width - sides[1] + 1)).floor()
    rows, columns = torch.arange(height).to(x).view(-1, 1), torch.arange(width).to(x)
    inside = (rows >= top) & (rows < top + sides[0]) & (columns >= left) & (columns < left + sides[1])
    return torch.where(inside, 0.5, x)


def bars(x: Images, rng: Streams) -> Images:
    """Cover a third of the image with four vertical or horizontal bars of one grey level."""
    upright, phase = uniform(rng, x, 0.0, 1.0) < 0.5, uniform(rng, x, 0.0, 1.0, lane=1)
    column, row = places(x)
    along = torch.where(upright, column, row)
    return torch.where((2 * along + phase) % 1 < 1 / 3, uniform(rng, x, 0.0, 1.0, lane=2), x)


def holes(x: Images, rng: Streams) -> Images:
    """Fill a third of 8 x 8 cells with the image's mean colour."""
    height, width = x.shape[2:]
    hidden = uniform(rng, x, 0.0, 1.0, 1, 8, 8) < 1 / 3
    rows, columns = (torch.arange(n) * 8 // n for n in (height, width))
    return torch.where(hidden[:, :, rows][:, :, :, columns], x.mean((2, 3), keepdim=True), x)
