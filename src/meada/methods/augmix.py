"""AugMix (Hendrycks et al., 2020) and AugMax (Wang et al., 2021): mix chains of simple operations; ask for similar
predictions on the copies. AugMax moves the mixing weights of one copy to where the network is wrong."""

from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from meada.errors import check_range
from meada.images import tones, warps
from meada.images.random_ops import Operation, apply_each, as_levels, randint, uniform
from meada.images.tones import Levels
from meada.maximise import ascend
from meada.methods.method import Context, Method
from meada.methods.parts.views import batch_random, views_loss
from meada.networks.embedding import unwrap
from meada.networks.freezing import frozen
from meada.spaces.mixture import blend
from meada.types import Batch, Images, PerSample, Scalar

STEP = 0.1  # of AugMax's mixing weights, along the sign of the gradient


def augmix(*, width: int = 3, depth: int = 3, severity: float = 3.0, consistency: float = 12.0) -> Method:
    """CE on the clean image, and the Jensen-Shannon divergence of it and two mixed copies.

    Args:
        width: chains mixed into a copy, by shares from Dirichlet(1, ..., 1).
        depth: operations in a chain, from 1 up to this many.
        severity: strengths are uniform from 0.1 up to this, of 10.
        consistency: weight of the divergence; 0 trains on the clean images alone.
    """
    chains = _checked("augmix", width, depth, severity, consistency)
    return Method(
        loss=partial(augmix_loss, chains=chains, consistency=consistency),
        title="AugMix",
        about="Mix randomly augmented copies of an image, and ask for similar predictions on all of them.",
        families=frozenset({"tone", "geometry"}),
        passes=(3.0, 3.0),
    )


def augmax(
    *, width: int = 3, depth: int = 3, severity: float = 3.0, steps: int = 5, consistency: float = 10.0
) -> Method:
    """Cross-entropy of the clean image plus ``consistency`` times its divergence from an AugMax and an AugMix copy.

    The authors train with separate batch-norm statistics for the AugMax copy; here all copies share them.

    Args:
        width, depth, severity: of AugMix's chains.
        steps: ascent steps on the mixing weights; a sample stops once it is misclassified.
        consistency: weight of the divergence.
    """
    check_range("augmax", "[0, inf)", steps=steps)
    chains = _checked("augmax", width, depth, severity, consistency)
    return Method(
        loss=partial(augmax_loss, chains=chains, steps=steps, consistency=consistency),
        families=frozenset({"tone", "geometry"}),
        title="AugMax",
        about="AugMix with one copy whose mixing weights are moved to where the network is wrong.",
        passes=(3.0 + steps, 3.0 + steps),
    )


def _checked(who: str, width: int, depth: int, severity: float, consistency: float) -> dict[str, Any]:
    """The arguments of :func:`mixed`."""
    check_range(who, "[1, inf)", width=width, depth=depth)
    check_range(who, "[0.1, 10]", severity=severity)
    check_range(who, "[0, inf)", consistency=consistency)
    return {"width": width, "depth": depth, "severity": severity}


def augmix_loss(
    net: nn.Module, batch: Batch, context: Context, *, chains: dict[str, Any], consistency: float
) -> Scalar:
    copies = [mixed(batch.x, context.each, **chains) for _ in range(2)]
    return views_loss(net, batch, [batch.x, *copies], labelled=1, consistency=consistency)


def augmax_loss(
    net: nn.Module, batch: Batch, context: Context, *, chains: dict[str, Any], steps: int, consistency: float
) -> Scalar:
    hard = hardest_mixture(net, batch, context, chains=chains, steps=steps)
    random = mixed(batch.x, context.each, **chains)
    return views_loss(net, batch, [batch.x, hard, random], labelled=1, consistency=consistency)


def hardest_mixture(net: nn.Module, batch: Batch, context: Context, *, chains: dict[str, Any], steps: int) -> Images:
    """A mixture of AugMix chains whose weights climb the loss until the sample is misclassified."""
    depth, severity = int(chains["depth"]), chains["severity"]
    levels = as_levels(batch.x)
    vertices = [chain(levels, context.each, depth, severity) / 255 for _ in range(int(chains["width"]))]
    space, inner = blend(vertices), unwrap(net)
    fooled = torch.zeros_like(batch.y, dtype=torch.bool)

    def score(x: Images, step: int) -> PerSample:
        logits = inner(x)
        fooled.logical_or_(logits.argmax(-1) != batch.y)
        return cross_entropy(logits, batch.y, reduction="none") * ~fooled

    theta = space.draw(batch_random(batch, context), batch.x.shape)
    with frozen(inner):
        return ascend(score, space, batch.x, theta, steps=steps, step_size=STEP, direction=torch.sign)


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
    """From 1 to ``depth`` operations, an image; each of a kind, strength and sign of its own."""
    n = len(v)
    length = 1 + randint(depth, v, n, generator=generator)
    for place in range(depth):
        which = randint(len(OPERATIONS), v, n, generator=generator)
        level = 0.1 + (severity - 0.1) * uniform(v, n, generator=generator)
        sign = 2.0 * randint(2, v, n, generator=generator) - 1
        v = apply_each(v, which.where(place < length, -1), OPERATIONS, level, sign.to(v))
    return v


def _part(level: PerSample, most: int | float) -> PerSample:
    """Level 10 is ``most``; cut to a whole number, as the authors'."""
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
