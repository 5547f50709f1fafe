"""Validation shifts: synthetic shifts of held-out source images, to select models without target data.

They come in families. A method declares the families that it trains on, and it is scored on the
others alone, so that the score is about shifts that it has not seen. No operation is one of the
reported targets: none of the digit domains, none of the fifteen corruptions, neither the noisy nor
the blurred domain of the quickstart. Where the targets are the fifteen corruptions, the four that
their authors set aside for validation take the place of the families.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor

from meada.corruptions import VALIDATION, corrupt
from meada.errors import MeadaError, nearest
from meada.evaluation.validation_shifts import filters, textures, tone_geometry
from meada.streams import Streams, positions_of, sample_streams
from meada.types import Families, Family, Images

Shift = Callable[[Images, Streams], Images]
PIXELS = 1 << 22  # values worked on at once

SHIFTS: dict[Family, tuple[Shift, ...]] = {
    "tone": (tone_geometry.invert, tone_geometry.fold, tone_geometry.gamma, tone_geometry.posterise),
    "colour": (tone_geometry.tint, tone_geometry.cast, tone_geometry.duotone, tone_geometry.hue),
    "geometry": (
        tone_geometry.rotate, tone_geometry.shear, tone_geometry.rescale, tone_geometry.tilt
    ),
    "occlusion": (tone_geometry.square, tone_geometry.bars, tone_geometry.holes),
    "filter": (filters.sharpen, filters.emboss, filters.random_filter),
    "edges": (filters.sketch, filters.contour, filters.etching),
    "blur": (filters.median, filters.fringes, filters.spin),
    "noise": (textures.speckle, textures.grain, textures.banding, textures.dead_pixels),
    "frequency": (textures.wave, textures.reweight, textures.flatten),
    "compression": (filters.few_cosines, filters.few_wavelets, filters.few_levels),
    "weather": (textures.haze, textures.flakes, textures.rain),
}  # fmt: skip

# Families that resemble each other stay in one half: lines, blurs and spectra are all filters of neighbourhoods.
HALF: Families = frozenset(("tone", "colour", "occlusion", "noise", "weather"))


def validation_families(trained: Collection[str]) -> tuple[Family, ...]:
    """Families for validation: all that are not in ``trained``.

    To compare several methods, give the union of what they train on: all are then scored on the same.

    >>> validation_families({"tone", "colour", "geometry", "filter", "edges", "blur", "frequency"})
    ('occlusion', 'noise', 'compression', 'weather')
    """
    for name in trained:
        _known(name)
    return tuple(family for family in SHIFTS if family not in trained)


def shifted(x: Images, families: Collection[str], *, seed: int = 0, index: Any = None) -> dict[str, Images]:
    """``{"family/operation": images}`` for every operation of the families, pixels in [0, 1].

    ``index`` is each image's position in its data set, by default in the batch: with ``seed`` it fixes
    the random numbers, so that an image gets the same pixels in any batch.
    """
    return {
        f"{family}/{shift.__name__}": _applied(x, family, shift, seed, positions_of(index, len(x)))
        for family in map(_known, families)
        for shift in SHIFTS[family]
    }


def shifted_once(x: Images, families: Collection[str], *, seed: int = 0, index: Any = None) -> dict[str, Images]:
    """``{family: images}``: one random operation of the family per image, keyed by its position.

    The pixels are those that :func:`shifted` gives for that operation.
    """
    positions = positions_of(index, len(x))
    return {family: _one_operation(x, family, seed, positions) for family in map(_known, families)}


def two_folds(families: Collection[str] = get_args(Family)) -> tuple[tuple[Families, Families], ...]:
    """Two ways to split the families: ``((train, validate), (train, validate))``, the halves swapped.

    For choosing between methods that would train on nearly every family (Efthymiadis et al., WACV
    2025): train each once on either half, and score it on the other one with :func:`cross_score`.
    Then train the chosen one on all families. To choose among checkpoints of one method,
    :func:`validation_families` is enough.

    >>> [sorted(validate) for train, validate in two_folds(("tone", "colour", "blur", "edges"))]
    [['blur', 'edges'], ['colour', 'tone']]
    """
    given = frozenset(_known(family) for family in families)
    first, second = given & HALF, given - HALF
    if not first or not second:
        raise MeadaError(f"families must be of both halves, got {', '.join(sorted(given)) or 'none'}")
    return (first, second), (second, first)


def cross_score(accuracy: Callable[[Families, Families], Mapping[Family, float]], **folds: Any) -> float:
    """Mean accuracy over all families, each scored with the network that was not trained on it.

    ``accuracy(train, validate)`` trains on the first families and gives the accuracy on each of the
    second; it is called once per fold of :func:`two_folds`, which takes the keyword ``families``.

    >>> cross_score(lambda train, validate: {family: 10.0 * len(train) for family in validate})
    54.54...
    """
    found: dict[Family, float] = {}
    for train, validate in two_folds(**folds):
        scores = accuracy(train, validate)
        if set(scores) != validate:
            raise MeadaError(f"scores must be of {', '.join(sorted(validate))}, got {', '.join(sorted(scores))}")
        found |= scores
    return sum(found.values()) / len(found)


def held_out_corruptions(x: Images, seed: int = 0) -> dict[str, Images]:
    """Speckle noise, Gaussian blur, spatter and saturation at the middle severity."""
    return {name: corrupt(x, name, 3, seed=seed) for name in VALIDATION}


def _known(family: Any) -> Family:
    if family not in SHIFTS:
        raise MeadaError(f"family must be one of {', '.join(SHIFTS)}, got '{family}': {nearest(str(family), SHIFTS)}")
    return family


def _one_operation(x: Images, family: Family, seed: int, positions: np.ndarray) -> Images:
    shifts: Sequence[Shift] = SHIFTS[family]
    which = sample_streams(seed, f"validation/{family}", 0, positions).integers(len(shifts))
    out = torch.empty_like(x)
    for number, shift in enumerate(shifts):
        (mine,) = np.nonzero(which == number)
        if len(mine):
            out[torch.from_numpy(mine)] = _applied(x[torch.from_numpy(mine)], family, shift, seed, positions[mine])
    return out


def _applied(x: Images, family: Family, shift: Shift, seed: int, positions: np.ndarray) -> Images:
    rng = sample_streams(seed, f"validation/{family}/{shift.__name__}", 0, positions)
    size = max(1, PIXELS // max(x[:1].numel(), 1))
    parts: list[Tensor] = [shift(x[i : i + size], rng[slice(i, i + size)]) for i in range(0, len(x), size)]
    return torch.cat(parts).clamp(0, 1) if parts else x
