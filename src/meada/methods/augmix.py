"""AugMix (Hendrycks et al., 2020): mix chains of simple operations; ask for similar predictions on the copies."""

import torch
from torch import nn

from meada.errors import check_range
from meada.images import tones, warps
from meada.images.random_ops import Operation, apply_each, as_levels, randint, uniform
from meada.images.tones import Levels
from meada.methods.method import Context, Method
from meada.methods.parts.views import views_loss
from meada.types import Batch, Images, PerSample, Scalar


def augmix(*, width: int = 3, depth: int = 3, severity: float = 3.0, consistency: float = 12.0) -> Method:
    """CE on the clean image, and the Jensen-Shannon divergence of it and two mixed copies.

    Args:
        width: chains mixed into a copy, by shares from Dirichlet(1, ..., 1).
        depth: operations in a chain, from 1 up to this many.
        severity: strengths are uniform from 0.1 up to this, of 10.
        consistency: weight of the divergence; 0 trains on the clean images alone.
    """
    check_range("augmix", "[1, inf)", width=width, depth=depth)
    check_range("augmix", "[0.1, 10]", severity=severity)
    check_range("augmix", "[0, inf)", consistency=consistency)

    def loss(net: nn.Module, batch: Batch, context: Context) -> Scalar:
        copies = [mixed(batch.x, context.each, width=width, depth=depth, severity=severity) for _ in range(2)]
        return views_loss(net, batch, [batch.x, *copies], labelled=1, consistency=consistency)

    return Method(
        loss=loss,
        title="AugMix",
        about="Mix randomly augmented copies of an image, and ask for similar predictions on all of them.",
        families=frozenset({"tone", "geometry"}),
        passes=(3.0, 3.0),
    )


def mixed(x: Images, generator: torch.Generator, *, width: int, depth: int, severity: float) -> Images:
    """(1 - m) x + m sum_i w_i chain_i(x), with m ~ Beta(1, 1) and w ~ Dirichlet(1, ..., 1)."""
    n = len(x)
    # Exponential numbers over their sum are Dirichlet(1, ..., 1), and Beta(1, 1) is uniform.
    waits = -(1 - uniform(x, width, n, 1, 1, 1, generator=generator)).log()
    w, m = waits / waits.sum(0), uniform(x, n, 1, 1, 1, generator=generator)
    v = as_levels(x)
    chains = torch.stack([chain(v, generator, depth, severity) for _ in range(width)]) / 255
    return (1 - m) * x + m * (w * chains).sum(0)


def chain(v: Levels, generator: torch.Generator, depth: int, severity: float) -> Levels:
    """Apply 1 to ``depth`` operations of random kind, strength and sign to each image."""
    n = len(v)
    length = 1 + randint(depth, v, n, generator=generator)
    for place in range(depth):
        which = randint(len(OPERATIONS), v, n, generator=generator)
        level = 0.1 + (severity - 0.1) * uniform(v, n, generator=generator)
        sign = 2.0 * randint(2, v, n, generator=generator) - 1
        v = apply_each(v, which.where(place < length, -1), OPERATIONS, level, sign.to(v))
    return v


def _part(level: PerSample, most: int | float) -> PerSample:
    """Scale a level so that 10 is ``most``; truncated to an integer as in the authors' code."""
    return (level * most / 10).trunc()


# None of them is near a corruption of the benchmark: colour, contrast, brightness and sharpness,
# which are, are left out.
OPERATIONS: tuple[Operation, ...] = (
    lambda v, level, sign: tones.autocontrast(v),
    lambda v, level, sign: tones.equalise(v),
    lambda v, level, sign: tones.posterise(v, 4 - _part(level, 4)),
    lambda v, level, sign: warps.rotate(v, sign * _part(level, 30), smooth=True),
    lambda v, level, sign: tones.solarise(v, 256 - _part(level, 256)),
    lambda v, level, sign: warps.shear_x(v, sign * level * 0.3 / 10, smooth=True),
    lambda v, level, sign: warps.shear_y(v, sign * level * 0.3 / 10, smooth=True),
    lambda v, level, sign: warps.translate_x(v, sign * _part(level, v.shape[3] / 3), smooth=True),
    lambda v, level, sign: warps.translate_y(v, sign * _part(level, v.shape[2] / 3), smooth=True),
)
