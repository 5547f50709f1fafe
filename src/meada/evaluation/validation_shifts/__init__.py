"""Validation shifts: how a held-out source image might look elsewhere, for choosing without a target.

They come in families. A method declares the families that it trains on, and it is scored on the
others alone, so that the score is about shifts that it has not seen. No operation is one of the
reported targets: none of the digit domains, none of the fifteen corruptions, neither the noisy nor
the blurred domain of the quickstart. Where the targets are the fifteen corruptions, the four that
their authors set aside for validation take the place of the families.
"""

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import torch
from torch import Tensor

from meada.corruptions import VALIDATION, corrupt
from meada.errors import MeadaError, nearest
from meada.evaluation.validation_shifts import filters
from meada.evaluation.validation_shifts import operations as op
from meada.streams import Streams, sample_streams
from meada.types import Family, Images

Shift = Callable[[Images, Streams], Images]
PIXELS = 1 << 22  # values worked on at once

SHIFTS: dict[Family, tuple[Shift, ...]] = {
    "tone": (op.invert, op.fold, op.gamma, op.posterise),
    "colour": (op.tint, op.cast, op.duotone, op.hue),
    "geometry": (op.rotate, op.shear, op.rescale, op.tilt),
    "occlusion": (op.square, op.bars, op.holes),
    "filter": (filters.sharpen, filters.emboss, filters.random_filter),
    "edges": (filters.sketch, filters.contour, filters.etching),
    "blur": (filters.median, filters.fringes, filters.spin),
    "noise": (op.speckle, op.grain, op.banding, op.dead_pixels),
    "frequency": (op.wave, op.reweight, op.flatten),
    "compression": (filters.few_cosines, filters.few_wavelets, filters.few_levels),
    "weather": (op.haze, op.flakes, op.rain),
}


def validation_families(trained: Collection[str]) -> tuple[Family, ...]:
    """The families left for validation when those in ``trained`` are trained on.

    To compare several methods, give the union of what they train on: all are then scored on the same.
    """
    for name in trained:
        _known(name)
    return tuple(family for family in SHIFTS if family not in trained)


def shifted_once(x: Images, families: Collection[str], *, seed: int = 0) -> dict[str, Images]:
    """``{family: images}``, pixels in [0, 1]: of each family every image gets one operation, drawn by its position."""
    return {family: one_operation(x, family, seed, np.arange(len(x))) for family in map(_known, families)}


def held_out_corruptions(x: Images, seed: int = 0) -> dict[str, Images]:
    """Speckle noise, Gaussian blur, spatter and saturation at the middle severity."""
    return {name: corrupt(x, name, 3, seed=seed) for name in VALIDATION}


def _known(family: Any) -> Family:
    if family not in SHIFTS:
        raise MeadaError(f"family must be one of {', '.join(SHIFTS)}, got '{family}': {nearest(str(family), SHIFTS)}")
    return family


def one_operation(x: Images, family: Family, seed: int, positions: np.ndarray) -> Images:
    """One operation for each image: with ``seed`` its position fixes the random numbers, whatever batch it is in."""
    shifts = SHIFTS[family]
    which = sample_streams(seed, f"validation/{family}", 0, positions).integers(len(shifts))
    out = torch.empty_like(x)
    for number, shift in enumerate(shifts):
        (mine,) = np.nonzero(which == number)
        if len(mine):
            out[torch.from_numpy(mine)] = applied(x[torch.from_numpy(mine)], family, shift, seed, positions[mine])
    return out


def applied(x: Images, family: Family, shift: Shift, seed: int, positions: np.ndarray) -> Images:
    rng = sample_streams(seed, f"validation/{family}/{shift.__name__}", 0, positions)
    size = max(1, PIXELS // max(x[:1].numel(), 1))
    parts: list[Tensor] = [shift(x[i : i + size], rng[slice(i, i + size)]) for i in range(0, len(x), size)]
    return torch.cat(parts).clamp(0, 1) if parts else x
