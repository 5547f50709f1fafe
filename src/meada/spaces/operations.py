"""One ordinary image operation at a random strength (as TrivialAugment: Mueller and Hutter, 2021)."""

from collections.abc import Callable, Mapping

from torch import Tensor

from meada.images import tones, warps
from meada.images.random_ops import apply_each, as_levels
from meada.spaces.space import Random, Shape, Space, Theta, positive
from meada.types import Images

Levels = Tensor  # (B, C, H, W), whole numbers from 0 to 255
Operation = Callable[[Levels, Tensor], Levels]  # strength in [-1, 1], one per image


OPERATIONS: dict[str, Operation] = {
    "shear_x": lambda v, s: warps.shear_x(v, 0.5 * s, smooth=True),
    "shear_y": lambda v, s: warps.shear_y(v, 0.5 * s, smooth=True),
    "translate_x": lambda v, s: warps.translate_x(v, s * v.shape[3] / 3, smooth=True),
    "translate_y": lambda v, s: warps.translate_y(v, s * v.shape[2] / 3, smooth=True),
    "rotate": lambda v, s: warps.rotate(v, 30 * s, smooth=True),
    "brightness": lambda v, s: tones.brightness(v, 1 + 0.9 * s),
    "colour": lambda v, s: tones.colour(v, 1 + 0.9 * s),
    "contrast": lambda v, s: tones.contrast(v, 1 + 0.9 * s),
    "sharpness": lambda v, s: tones.sharpness(v, 1 + 0.9 * s),
    "posterise": lambda v, s: tones.posterise(v, (8 - 6 * s.abs()).round()),
    "solarise": lambda v, s: tones.solarise(v, 256 * (1 - s.abs())),
    "autocontrast": lambda v, s: tones.autocontrast(v),
    "equalise": lambda v, s: tones.equalise(v),
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
        return apply_each(levels, theta["operation"], known, theta["strength"].to(x)).to(x) / 255

    return Space(
        draw=draw, transform=transform, families=frozenset({"tone", "colour", "geometry"}), channels=(1, 3), name=name
    )
