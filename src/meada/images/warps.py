"""Shear, translation and rotation of batches of 8-bit images, equal to Pillow's.

Pixels from outside the image are black. A strength is one number per image.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from meada.images.tones import Levels
from meada.types import PerSample

Maps = Float[Tensor, "B 2 3"]  # from a place in the result to the place in the image


def shear_x(v: Levels, slant: PerSample, *, smooth: bool = False) -> Levels:
    return affine(v, _maps(v, xy=slant), smooth=smooth)


def shear_y(v: Levels, slant: PerSample, *, smooth: bool = False) -> Levels:
    return affine(v, _maps(v, yx=slant), smooth=smooth)


def translate_x(v: Levels, pixels: PerSample, *, smooth: bool = False) -> Levels:
    """To the left where ``pixels`` is positive, as Pillow's transform has it."""
    return affine(v, _maps(v, x=pixels), smooth=smooth)


def translate_y(v: Levels, pixels: PerSample, *, smooth: bool = False) -> Levels:
    return affine(v, _maps(v, y=pixels), smooth=smooth)


def rotate(v: Levels, degrees: PerSample, *, smooth: bool = False) -> Levels:
    """Anticlockwise about the centre.

    >>> x = torch.arange(4.0).view(1, 1, 2, 2)
    >>> rotate(x, torch.tensor([90.0])).view(2, 2).tolist()
    [[1.0, 3.0], [0.0, 2.0]]
    """
    angle = degrees.double().deg2rad()
    cos, sin = angle.cos(), angle.sin()
    centre_x, centre_y = v.shape[3] / 2, v.shape[2] / 2
    return affine(v, _maps(
        v, xx=cos, xy=-sin, x=centre_x - cos * centre_x + sin * centre_y,
        yx=sin, yy=cos, y=centre_y - sin * centre_x - cos * centre_y,
    ), smooth=smooth)  # fmt: skip


def affine(v: Levels, maps: Maps, *, smooth: bool = False) -> Levels:
    """Each pixel of the result is read where its map sends its centre: there, or between four."""
    n, _, h, w = v.shape
    rows, columns = (torch.arange(k, dtype=torch.float64, device=v.device) + 0.5 for k in (h, w))
    places = torch.stack([columns.expand(h, w), rows[:, None].expand(h, w), torch.ones_like(rows[:, None] * columns)])
    # Rounded: the turn by a right angle must not fall short of a pixel's edge by 1e-16.
    x, y = (maps.double() @ places.view(3, -1)).mul(1e9).round().div(1e9).unbind(1)
    inside = (x >= 0) & (x < w) & (y >= 0) & (y < h)
    read = _between(v, x - 0.5, y - 0.5) if smooth else _at(v, x.floor(), y.floor())
    return torch.where(inside[:, None], read, torch.zeros_like(read)).view_as(v)


def _at(v: Levels, x: Tensor, y: Tensor) -> Tensor:
    """The pixels at columns ``x`` and rows ``y`` (N, P), the nearest inside the image."""
    h, w = v.shape[2:]
    index = y.clamp(0, h - 1).long() * w + x.clamp(0, w - 1).long()
    return v.flatten(2).gather(2, index[:, None].expand(-1, v.shape[1], -1))


def _between(v: Levels, x: Tensor, y: Tensor) -> Tensor:
    """Linear between the four pixels around (x, y), truncated to a level."""
    left, top = x.floor(), y.floor()
    right, down = (x - left)[:, None], (y - top)[:, None]
    upper = _at(v, left, top) * (1 - right) + _at(v, left + 1, top) * right
    lower = _at(v, left, top + 1) * (1 - right) + _at(v, left + 1, top + 1) * right
    return (upper * (1 - down) + lower * down + 1e-9).floor().to(v.dtype)


def _maps(v: Levels, **entries: Tensor) -> Maps:
    """The map that leaves all in place, but for ``entries``: (xx, xy, x) and (yx, yy, y)."""
    values = {"xx": 1.0, "xy": 0.0, "x": 0.0, "yx": 0.0, "yy": 1.0, "y": 0.0}
    rows = [entries[k].double() if k in entries else torch.full((len(v),), values[k]).double() for k in values]
    return torch.stack([row.to(v.device) for row in rows], 1).view(-1, 2, 3)
