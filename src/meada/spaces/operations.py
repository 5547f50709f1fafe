"""One ordinary image operation at a random strength (as TrivialAugment: Mueller and Hutter, 2021)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from meada.images import tones, warps
from meada.images.random_ops import as_levels
from meada.spaces.space import Random, Shape, Space, Theta, positive
from meada.types import Images

Levels = Tensor  # (B, C, H, W), whole numbers from 0 to 255
Operation = Callable[[Levels, Tensor], Levels]  # strength in [-1, 1], one per image


@dataclass(frozen=True)
class Move:
    """An affine map of the image, linear between pixels; all moves of a batch are made in one go."""

    maps: Callable[[Levels, Tensor], warps.Maps]

    def __call__(self, v: Levels, s: Tensor) -> Levels:
        return warps.affine(v, self.maps(v, s), smooth=True)


@dataclass(frozen=True)
class Tone:
    """A new level for each old one, (B, C or 1, 256); all tables of a batch are looked up in one go."""

    table: Callable[[Levels, Tensor], Tensor]

    def __call__(self, v: Levels, s: Tensor) -> Levels:
        return tones.look_up(v, self.table(v, s))


def _pointwise(operation: Operation) -> Tone:
    """The table of an operation that treats every level alike, wherever it is: its result on all 256."""

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
        return _apply(levels, theta["operation"], known, theta["strength"].to(x)).to(x) / 255

    return Space(
        draw=draw,
        transform=transform,
        families=frozenset({"tone", "colour", "geometry"}),
        channels=(1, 3),
        name=name,
    )


def _apply(v: Levels, which: Tensor, known: Sequence[Operation], strength: Tensor) -> Levels:
    """``known[which[i]]`` of image i: in the order of the operations, moves and tables each in one go."""
    order, counts = which.argsort(stable=True), which.bincount(minlength=len(known)).tolist()
    sorted_v, sorted_s = v[order], strength[order.to(strength.device)]
    moved: list[tuple[Levels, Tensor]] = []
    toned: list[tuple[Levels, Tensor]] = []
    done: list[tuple[Tensor, Levels]] = []
    places: dict[type, list[Tensor]] = {Move: [], Tone: []}
    parts = zip(known, *(t.split(counts) for t in (order, sorted_v, sorted_s)), strict=True)
    for operation, rows, part, s in parts:
        if not len(rows):
            continue
        if isinstance(operation, Move):
            moved.append((part, operation.maps(part, s)))
            places[Move].append(rows)
        elif isinstance(operation, Tone):
            toned.append((part, operation.table(part, s).to(v.dtype).expand(-1, v.shape[1], -1)))
            places[Tone].append(rows)
        else:
            done.append((rows, operation(part, s)))
    if moved:
        images, maps = map(torch.cat, zip(*moved, strict=True))
        done.append((torch.cat(places[Move]), warps.affine(images, maps, smooth=True)))
    if toned:
        images, tables = map(torch.cat, zip(*toned, strict=True))
        done.append((torch.cat(places[Tone]), tones.look_up(images, tables)))
    rows = torch.cat([rows for rows, _ in done])
    return torch.cat([part for _, part in done])[rows.argsort()]
