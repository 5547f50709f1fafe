"""AutoAugment (Cubuk et al., 2019): the published policy for CIFAR-10."""

import torch
from torch import nn

from meada.errors import check_range
from meada.images import tones, warps
from meada.images.random_ops import Operation, apply_each, as_levels, randint, uniform
from meada.methods.cutout import hide
from meada.methods.method import Context, Method, cross_entropy_loss
from meada.types import Batch, Families, Images, Scalar

Step = tuple[str, float, int]

# Table 7 of their appendix: pairs of (operation, probability, magnitude from 0 to 9); no strength is 0.
CIFAR10: tuple[tuple[Step, Step], ...] = (
    (("invert", 0.1, 0), ("contrast", 0.2, 6)), (("rotate", 0.7, 2), ("translate_x", 0.3, 9)),
    (("sharpness", 0.8, 1), ("sharpness", 0.9, 3)), (("shear_y", 0.5, 8), ("translate_y", 0.7, 9)),
    (("autocontrast", 0.5, 0), ("equalise", 0.9, 0)), (("shear_y", 0.2, 7), ("posterise", 0.3, 7)),
    (("colour", 0.4, 3), ("brightness", 0.6, 7)), (("sharpness", 0.3, 9), ("brightness", 0.7, 9)),
    (("equalise", 0.6, 0), ("equalise", 0.5, 0)), (("contrast", 0.6, 7), ("sharpness", 0.6, 5)),
    (("colour", 0.7, 7), ("translate_x", 0.5, 8)), (("equalise", 0.3, 0), ("autocontrast", 0.4, 0)),
    (("translate_y", 0.4, 3), ("sharpness", 0.2, 6)), (("brightness", 0.9, 6), ("colour", 0.2, 8)),
    (("solarise", 0.5, 2), ("invert", 0.0, 0)), (("equalise", 0.2, 0), ("autocontrast", 0.6, 0)),
    (("equalise", 0.2, 0), ("equalise", 0.6, 0)), (("colour", 0.9, 9), ("equalise", 0.6, 0)),
    (("autocontrast", 0.8, 0), ("solarise", 0.2, 8)), (("brightness", 0.1, 3), ("colour", 0.7, 0)),
    (("solarise", 0.4, 5), ("autocontrast", 0.9, 0)), (("translate_y", 0.9, 9), ("translate_y", 0.7, 9)),
    (("autocontrast", 0.9, 0), ("solarise", 0.8, 3)), (("equalise", 0.8, 0), ("invert", 0.1, 0)),
    (("translate_y", 0.7, 9), ("autocontrast", 0.9, 0)),
)  # fmt: skip


def autoaugment(*, cutout: float = 0.0) -> Method:
    """Each image through one of 25 pairs of operations; ``cutout`` of its side is then hidden.

    The authors end with Cutout (0.5 here); Table 3 has Cutout as a column of its own and does not
    say, so by default it is left out.
    """
    check_range("autoaugment", "[0, 1)", cutout=cutout)
    families: Families = frozenset({"tone", "colour", "geometry", "filter", "blur"})  # sharpness filters and blurs

    def loss(net: nn.Module, batch: Batch, context: Context) -> Scalar:
        x = varied(batch.x, context.each)
        return cross_entropy_loss(net, batch._replace(x=hide(x, context.each, cutout) if cutout else x), context)

    return Method(
        loss=loss,
        title="AutoAugment",
        about="Change each image by two operations from a policy that was searched for on CIFAR-10.",
        families=families | frozenset({"occlusion"} if cutout else ()),
    )


def varied(x: Images, generator: torch.Generator) -> Images:
    """Apply a random pair of operations of the policy to each image."""
    n, names = len(x), list(OPERATIONS)
    # The policy as (25, 2) tensors: operation, probability, magnitude.
    kinds = torch.tensor([[names.index(name) for name, _, _ in pair] for pair in CIFAR10], device=x.device)
    chances = torch.tensor([[p for _, p, _ in pair] for pair in CIFAR10], dtype=torch.float64, device=x.device)
    bins = torch.tensor([[m for _, _, m in pair] for pair in CIFAR10], device=x.device)
    pair = randint(len(CIFAR10), x, n, generator=generator)
    v = as_levels(x)
    for place in range(2):
        left_out = uniform(chances, n, generator=generator) >= chances[pair, place]
        sign = 2.0 * randint(2, x, n, generator=generator) - 1
        which = kinds[pair, place].masked_fill(left_out, -1)
        strength = bins[pair, place].to(v) / 9  # ten magnitudes, 0 to 9
        v = apply_each(v, which, list(OPERATIONS.values()), strength, sign.to(v))
    return v / 255


# Strength and sign, one of each per image. Translations go up to 150 pixels of a side of 331, at which the authors set
# the range.
OPERATIONS: dict[str, Operation] = {
    "shear_x": lambda v, s, sign: warps.shear_x(v, sign * s * 0.3),
    "shear_y": lambda v, s, sign: warps.shear_y(v, sign * s * 0.3),
    "translate_x": lambda v, s, sign: warps.translate_x(v, sign * s * v.shape[3] * 150 / 331),
    "translate_y": lambda v, s, sign: warps.translate_y(v, sign * s * v.shape[2] * 150 / 331),
    "rotate": lambda v, s, sign: warps.rotate(v, sign * s * 30.0),
    "colour": lambda v, s, sign: tones.colour(v, 1 + sign * s * 0.9),
    "contrast": lambda v, s, sign: tones.contrast(v, 1 + sign * s * 0.9),
    "brightness": lambda v, s, sign: tones.brightness(v, 1 + sign * s * 0.9),
    "sharpness": lambda v, s, sign: tones.sharpness(v, 1 + sign * s * 0.9),
    "posterise": lambda v, s, sign: tones.posterise(v, (8 - 4 * s).round()),
    "solarise": lambda v, s, sign: tones.solarise(v, 255 - 255 * s),
    "autocontrast": lambda v, s, sign: tones.autocontrast(v),
    "equalise": lambda v, s, sign: tones.equalise(v),
    "invert": lambda v, s, sign: tones.invert(v),
}
