"""Shear, translation and rotation of batches of 8-bit images, equal to Pillow's.

Pixels from outside the image are black. A strength is one number per image.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from meada.images.constants import constant
from meada.images.tones import Levels
from meada.types import PerSample

PLACES = {"xx": (0, 0), "xy": (0, 1), "x": (0, 2), "yx": (1, 0), "yy": (1, 1), "y": (1, 2)}
Maps = Float[Tensor, "B 2 3"]  # from a place in the result to the place in the image


def shear_x(v: Levels, slant: PerSample, *, smooth: bool = False) -> Levels:
    return affine(v, maps(v, xy=slant), smooth=smooth)


def shear_y(v: Levels, slant: PerSample, *, smooth: bool = False) -> Levels:
    return affine(v, maps(v, yx=slant), smooth=smooth)


def translate_x(v: Levels, pixels: PerSample, *, smooth: bool = False) -> Levels:
    """Shift to the left for positive ``pixels``, as in Pillow's transform."""
    return affine(v, maps(v, x=pixels), smooth=smooth)


def translate_y(v: Levels, pixels: PerSample, *, smooth: bool = False) -> Levels:
    return affine(v, maps(v, y=pixels), smooth=smooth)


def rotate(v: Levels, degrees: PerSample, *, smooth: bool = False) -> Levels:
    """Rotate anticlockwise about the centre.

    >>> x = torch.arange(4.0).view(1, 1, 2, 2)
    >>> rotate(x, torch.tensor([90.0])).view(2, 2).tolist()
    [[1.0, 3.0], [0.0, 2.0]]
    """
    return affine(v, turn(v, degrees), smooth=smooth)


def turn(v: Levels, degrees: PerSample) -> Maps:
    """The maps of :func:`rotate`."""
    angle = degrees.double().deg2rad()
    cos, sin = angle.cos(), angle.sin()
    centre_x, centre_y = v.shape[3] / 2, v.shape[2] / 2
    return maps(
        v, xx=cos, xy=-sin, x=centre_x - cos * centre_x + sin * centre_y,
        yx=sin, yy=cos, y=centre_y - sin * centre_x - cos * centre_y,
    )  # fmt: skip


def affine(v: Levels, into: Maps, *, smooth: bool = False) -> Levels:
    """Affine transform: read each output pixel at its mapped centre, nearest or bilinear."""
    h, w = v.shape[2:]
    # Rounded: the turn by a right angle must not fall short of a pixel's edge by 1e-16.
    x, y = (into.double() @ _centres(h, w, v.device)).mul_(1e9).round_().div_(1e9).unbind(1)
    inside = (x >= 0) & (x < w) & (y >= 0) & (y < h)
    read = _between(v, x - 0.5, y - 0.5) if smooth else _at(v, x.floor(), y.floor())
    return read.masked_fill_(~inside[:, None], 0).view_as(v)


@constant
def _centres(h: int, w: int, device: torch.device) -> Tensor:
    """Columns, rows and ones (3, H W)."""
    rows, columns = (torch.arange(k, dtype=torch.float64, device=device) + 0.5 for k in (h, w))
    ones = torch.ones_like(rows[:, None] * columns)
    return torch.stack([columns.expand(h, w), rows[:, None].expand(h, w), ones]).view(3, -1)


def _at(v: Levels, x: Tensor, y: Tensor) -> Tensor:
    """The pixels at columns ``x`` and rows ``y`` (N, P), clamped to the image."""
    h, w = v.shape[2:]
    index = y.clamp(0, h - 1).long() * w + x.clamp(0, w - 1).long()
    return v.flatten(2).gather(2, index[:, None].expand(-1, v.shape[1], -1))


def _between(v: Levels, x: Tensor, y: Tensor) -> Tensor:
    """Bilinear interpolation at (x, y), truncated to 8 bits."""
    h, w = v.shape[2:]
    left, top = x.floor(), y.floor()
    right, down = (x - left)[:, None], (y - top)[:, None]
    columns = [place.clamp(0, w - 1).long() for place in (left, left + 1)]
    rows = [place.clamp_(0, h - 1).long().mul_(w) for place in (top, top + 1)]
    pixels = v.flatten(2).double()
    at = lambda i, j: pixels.gather(2, (rows[i] + columns[j])[:, None].expand(-1, v.shape[1], -1))
    keep = 1 - right
    upper = at(0, 0).mul_(keep).add_(at(0, 1).mul_(right))
    lower = at(1, 0).mul_(keep).add_(at(1, 1).mul_(right))
    return upper.mul_(1 - down).add_(lower.mul_(down)).add_(1e-9).floor_().to(v.dtype)


def maps(v: Levels, **entries: Tensor) -> Maps:
    """The identity map with some ``entries`` replaced: (xx, xy, x) and (yx, yy, y)."""
    made = _unmoved(v.device).repeat(len(v), 1, 1)
    for name, values in entries.items():
        made[:, *PLACES[name]] = values.to(made)
    return made


@constant
def _unmoved(device: torch.device) -> Tensor:
    return torch.eye(2, 3, dtype=torch.float64, device=device)
