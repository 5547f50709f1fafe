"""Validation shifts of place: geometry (pixels move) and occlusion (pixels are covered)."""

import math

import torch
from torch import Tensor
from torch.nn.functional import grid_sample

from meada.evaluation.validation_shifts.random_numbers import outside_middle, uniform
from meada.streams import Streams
from meada.types import Images


def rotate(x: Images, rng: Streams) -> Images:
    """By 10 to 30 degrees either way."""
    angle = outside_middle(rng, x, math.pi / 18, math.pi / 6)
    column, row = places(x)
    return read(x, angle.cos() * column - angle.sin() * row, angle.sin() * column + angle.cos() * row)


def shear(x: Images, rng: Streams) -> Images:
    column, row = places(x)
    return read(x, column + outside_middle(rng, x, 0.15, 0.4) * row, row)


def rescale(x: Images, rng: Streams) -> Images:
    """Larger by up to 1.4 or smaller down to 0.6, on black."""
    factor = torch.where(uniform(rng, x, 0.0, 1.0) < 0.5, 1 / uniform(rng, x, 0.6, 0.85, lane=1), 1 / 1.4)
    column, row = places(x)
    return read(x, column * factor, row * factor)


def tilt(x: Images, rng: Streams) -> Images:
    """Seen from the side: perspective along both axes."""
    column, row = places(x)
    across, down = outside_middle(rng, x, 0.15, 0.35), outside_middle(rng, x, 0.15, 0.35, lane=1)
    depth = 1 + across * column + down * row
    return read(x, column / depth, row / depth)


def places(x: Images) -> tuple[Tensor, Tensor]:
    """Columns and rows of the pixels' centres, the image's edges at -1 and 1."""
    row, column = ((2 * torch.arange(n).to(x) + 1) / n - 1 for n in x.shape[2:])
    return column.expand(1, 1, *x.shape[2:]), row[:, None].expand(1, 1, *x.shape[2:])


def read(x: Images, column: Tensor, row: Tensor, beyond: str = "zeros") -> Images:
    """Each pixel from the place that it is sent to, linearly between four."""
    shape = (len(x), 1, *x.shape[2:])
    grid = torch.cat([column.expand(shape), row.expand(shape)], 1).permute(0, 2, 3, 1)
    return grid_sample(x, grid, padding_mode=beyond, align_corners=False)


def square(x: Images, rng: Streams) -> Images:
    """A grey square, a third as wide as the image, somewhere in it."""
    height, width = x.shape[2:]
    sides = (max(height // 3, 1), max(width // 3, 1))
    top = (uniform(rng, x, 0.0, 1.0) * (height - sides[0] + 1)).floor()
    left = (uniform(rng, x, 0.0, 1.0, lane=1) * (width - sides[1] + 1)).floor()
    rows, columns = torch.arange(height).to(x).view(-1, 1), torch.arange(width).to(x)
    inside = (rows >= top) & (rows < top + sides[0]) & (columns >= left) & (columns < left + sides[1])
    return torch.where(inside, 0.5, x)


def bars(x: Images, rng: Streams) -> Images:
    """A fence: four bars, upright or level, that cover a third of the image in one grey level."""
    upright, phase = uniform(rng, x, 0.0, 1.0) < 0.5, uniform(rng, x, 0.0, 1.0, lane=1)
    column, row = places(x)
    along = torch.where(upright, column, row)
    return torch.where((2 * along + phase) % 1 < 1 / 3, uniform(rng, x, 0.0, 1.0, lane=2), x)


def holes(x: Images, rng: Streams) -> Images:
    """A third of 8 x 8 cells shows the image's mean colour."""
    height, width = x.shape[2:]
    hidden = uniform(rng, x, 0.0, 1.0, 1, 8, 8) < 1 / 3
    rows, columns = (torch.arange(n) * 8 // n for n in (height, width))
    return torch.where(hidden[:, :, rows][:, :, :, columns], x.mean((2, 3), keepdim=True), x)
