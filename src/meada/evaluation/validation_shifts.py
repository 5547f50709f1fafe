"""Crafted shifts: how a held-out source image might look elsewhere, for choosing without a target.

The list is fixed and disjoint from every reported target: none of the digit domains, none of the
fifteen corruptions, neither the noisy nor the blurred domain of the quickstart. Where the targets
are the fifteen corruptions, the four that their authors set aside for validation take its place.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from meada.corruptions import VALIDATION, corrupt
from meada.streams import stream
from meada.types import Images


def invert(x: Images, generator: torch.Generator) -> Images:
    return 1 - x


def tint(x: Images, generator: torch.Generator) -> Images:
    """Each channel pulled towards a grey level of its own, halfway."""
    colour = torch.rand(len(x), x.shape[1], 1, 1, generator=generator, dtype=x.dtype)
    return 0.5 * x + 0.5 * colour


def rotate(x: Images, generator: torch.Generator) -> Images:
    """By up to 30 degrees either way."""
    angle = (2 * torch.rand(len(x), generator=generator, dtype=x.dtype) - 1) * math.pi / 6
    cos, sin, zero = angle.cos(), angle.sin(), torch.zeros_like(angle)
    return _warp(x, torch.stack([cos, -sin, zero, sin, cos, zero], 1).view(-1, 2, 3))


def shear(x: Images, generator: torch.Generator) -> Images:
    slant = 0.8 * torch.rand(len(x), generator=generator, dtype=x.dtype) - 0.4
    one, zero = torch.ones_like(slant), torch.zeros_like(slant)
    return _warp(x, torch.stack([one, slant, zero, zero, one, zero], 1).view(-1, 2, 3))


def hide(x: Images, generator: torch.Generator) -> Images:
    """A grey square, a third as wide as the image, somewhere in it."""
    height, width = x.shape[-2:]
    side = (max(height // 3, 1), max(width // 3, 1))
    top = torch.randint(height - side[0] + 1, (len(x), 1, 1, 1), generator=generator)
    left = torch.randint(width - side[1] + 1, (len(x), 1, 1, 1), generator=generator)
    rows, columns = torch.arange(height).view(-1, 1), torch.arange(width)
    inside = (rows >= top) & (rows < top + side[0]) & (columns >= left) & (columns < left + side[1])
    return torch.where(inside, torch.full_like(x, 0.5), x)


Shift = Callable[[Images, torch.Generator], Images]
CRAFTED: dict[str, Shift] = {
    "invert": invert,
    "tint": tint,
    "rotate": rotate,
    "shear": shear,
    "hide": hide,
}


def crafted(x: Images, seed: int = 0) -> dict[str, Images]:
    """Every shift of the same images; the same pixels whenever it is asked."""
    return {name: shift(x, stream(seed, "crafted", name)) for name, shift in CRAFTED.items()}


def held_out_corruptions(x: Images, seed: int = 0) -> dict[str, Images]:
    """Speckle noise, Gaussian blur, spatter and saturation at the middle severity."""
    return {name: corrupt(x, name, 3, seed=seed) for name in VALIDATION}


CRAFTED_SETS: dict[str, Callable[[Images], dict[str, Images]]] = {
    "shifts": crafted,
    "corruptions": held_out_corruptions,
}


def _warp(x: Images, theta: Tensor) -> Images:
    grid = affine_grid(theta, list(x.shape), align_corners=False)
    return grid_sample(x, grid, align_corners=False)
