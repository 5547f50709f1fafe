"""One standard image operation at a random strength (as in TrivialAugment: Mueller and Hutter, 2021)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from meada.images import tones, warps
from meada.images.random_ops import as_levels
from meada.spaces.space import Random, Shape, Space, Theta, positive
from meada.types import Families, Images

Levels = Tensor  # (B, C, H, W), whole numbers from 0 to 255
Operation = Callable[[Levels, Tensor], Levels]  # strength in [-1, 1], one per image


@dataclass(frozen=True)
class Move:
    """An affine map of the image with bilinear interpolation; all maps of a batch are applied at once."""

    maps: Callable[[Levels, Tensor], warps.Maps]

    def __call__(self, v: Levels, s: Tensor) -> Levels:
        return warps.affine(v, self.maps(v, s), smooth=True)


@dataclass(frozen=True)
class Tone:
    """A look-up table of levels, (B, C or 1, 256); all tables of a batch are applied at once."""

    table: Callable[[Levels, Tensor], Tensor]

    def __call__(self, v: Levels, s: Tensor) -> Levels:
        return tones.look_up(v, self.table(v, s))


def _pointwise(operation: Operation) -> Tone:
    """The look-up table of a pointwise operation: its result for all 256 levels."""

    def table(v: Levels, s: Tensor) -> Tensor:
        return operation(tones.every_level(v).to(v.dtype).expand(len(v), 1, 1, 256), s)[:, :, 0]

    return Tone(table)


OPERATIONS: dict[str, Operation] = {
    "shear_x": Move(lambda v, s: warps.maps(v, xy=0.5 * s)),
    "shear_y": Move(lambda v, s: warps.maps(v, yx=0.5 * s)),
    "translate_x": Move(lambda v, s: warps.maps(v, x=s * v.shape[3] / 3)),
    "translate_y": Move(lambda v, s: warps.maps(v, y=s * v.shape[2] / 3)),
    "rotate": Move(lambda v, s: warps.turn(v, 30 * s)),
    "brightness": _pointwise(lambda v, s: tones.brightness(v, 1 + 0.9 * s)),
    "colour": lambda v, s: tones.colour(v, 1 + 0.9 * s),
    "contrast": Tone(lambda v, s: tones.contrast_table(v, 1 + 0.9 * s)),
    "sharpness": lambda v, s: tones.sharpness(v, 1 + 0.9 * s),
    "posterise": _pointwise(lambda v, s: tones.posterise(v, (8 - 6 * s.abs()).round())),
    "solarise": _pointwise(lambda v, s: tones.solarise(v, 256 * (1 - s.abs()))),
    "autocontrast": Tone(lambda v, s: tones.autocontrast_table(v)),
    "equalise": Tone(lambda v, s: tones.equalise_table(v)),
}


def operations(*, strength: float = 1.0) -> Space:
    """One of thirteen operations, uniform; its strength is uniform with a random sign.

    Rotation is at most 30 degrees and nothing is flipped, so that digits and text stay readable.
    """
    return one_operation(OPERATIONS, "operations", strength=positive("strength", strength))


def one_operation(table: Mapping[str, Operation], name: str, *, strength: float = 1.0) -> Space:
    """One operation of ``table``, uniform, with a strength uniform in -1..1 times ``strength``."""
    known = list(table.values())

    def draw(random: Random, shape: Shape) -> Theta:
        return {
            "operation": random.integers("operation", len(known)),
            "strength": random.uniform("strength", low=-strength, high=strength).clamp(-1, 1),
        }

    def transform(x: Images, theta: Theta) -> Images:
        levels = as_levels(x.detach().clamp(0, 1))
        return _apply(levels, theta["operation"], known, theta["strength"].to(x)).div_(255)

    families: Families = frozenset({"tone", "colour", "geometry", "filter", "blur"})  # sharpness filters and blurs
    return Space(draw=draw, transform=transform, families=families, channels=(1, 3), name=name)


def _apply(v: Levels, which: Tensor, known: Sequence[Operation], strength: Tensor) -> Levels:
    """Apply ``known[which[i]]`` to image i: all affine maps at once, all look-up tables at once, others one by one."""
    out = torch.empty_like(v)
    order, counts = which.argsort(stable=True).to(v.device), which.bincount(minlength=len(known)).tolist()
    moved: list[tuple[Tensor, Levels, Tensor]] = []
    toned: list[tuple[Tensor, Levels, Tensor]] = []
    sorted_by_operation = (order, v.index_select(0, order), strength.index_select(0, order))
    groups = zip(known, *(one.split(counts) for one in sorted_by_operation), strict=True)
    for operation, rows, mine, s in groups:
        if not len(rows):
            continue
        if isinstance(operation, Move):
            moved.append((rows, mine, operation.maps(mine, s)))
        elif isinstance(operation, Tone):
            toned.append((rows, mine, operation.table(mine, s).to(v.dtype).expand(-1, v.shape[1], -1)))
        else:
            out.index_copy_(0, rows, operation(mine, s))
    if moved:
        rows, images, maps = map(torch.cat, zip(*moved, strict=True))
        out.index_copy_(0, rows, warps.affine(images, maps, smooth=True))
    if toned:
        rows, images, tables = map(torch.cat, zip(*toned, strict=True))
        out.index_copy_(0, rows, tones.look_up(images, tables))
    return out
