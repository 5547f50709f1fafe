"""Control for ME-ADA: move each sample by the same distance in a random direction."""

import warnings
from dataclasses import replace
from functools import wraps
from typing import Any

import torch
from torch import Tensor, nn

from meada.machine.distributed import World
from meada.methods.meada import PARENTS, GrowthRule, append_in_blocks, meada
from meada.methods.method import Context, Grow, Method
from meada.pool import Pool
from meada.streams import sample_streams
from meada.types import Images, Labels, PerSample


@wraps(meada, assigned=())  # the arguments are ME-ADA's, all of them
def noise(*, grow: GrowthRule = "pool", block: int = 128, **ascent: Any) -> Method:
    """ME-ADA's pool, perturbation sizes and schedule with random directions.

    The ascent is computed too: the noise moves a sample by the same distance.

    >>> noise(grow="source").growth(100, 2)
    300
    """
    plain = meada(grow=grow, block=block, **ascent)

    def append_displaced(net: nn.Module, pool: Pool, context: Context) -> None:
        chosen, short = PARENTS[grow](pool), 0

        def elsewhere(index: Labels) -> Images:
            nonlocal short
            x, size = pool.images(index), climbed(net, pool, index, context, plain.grow)
            moved = displaced(x, directions(x, index, context), size)
            short += int((distance(moved, x) < size * (1 - 1e-4)).sum())
            return moved

        append_in_blocks(pool, chosen, elsewhere, context, block=block, kind="noise, ")
        if short:
            warnings.warn(
                f"round {context.round + 1}: noise clamped to [0, 1] is smaller than ME-ADA's "
                f"perturbation for {short} of {len(chosen)} samples",
                stacklevel=2,
            )

    return replace(
        plain,
        grow=append_displaced,
        title="Noise control",
        about="Control for ME-ADA: move each image by the same distance in a random direction.",
        families=frozenset({"noise"}),
    )


def climbed(net: nn.Module, pool: Pool, index: Labels, context: Context, climb: Grow) -> PerSample:
    """Norm of ME-ADA's perturbation of each sample."""
    x = pool.images(index)
    alone = Pool(x, pool.labels[index])  # every rule of growth perturbs all of a new pool
    climb(net, alone, replace(context, tell=lambda done, total: None, world=World()))
    return distance(alone.images(torch.arange(len(x), 2 * len(x))), x)


def directions(x: Images, index: Labels, context: Context) -> Images:
    """Gaussian directions, keyed by (seed, round, position in the pool)."""
    own = sample_streams(context.seed, "noise in place of the ascent", context.round, index.numpy())
    drawn: Tensor = torch.from_numpy(own.normal(x.shape[1:]))
    return drawn.to(x)


def distance(x: Images, x0: Images) -> PerSample:
    return (x - x0).flatten(1).norm(dim=1)


def displaced(x: Images, direction: Images, size: PerSample) -> Images:
    r"""``x`` along ``direction``, clamped to [0, 1], at the distance ``size`` after clamping.

    With room :math:`r_i` for pixel i and direction g the squared distance at scale s is
    :math:`\sum_i \min(s |g_i|, r_i)^2`: between two pixels' stops :math:`r_i / |g_i|` it is
    quadratic in s, so the scale has a closed form. A size out of reach gives the farthest corner.

    >>> grey = torch.full((1, 1, 1, 2), 0.5)
    >>> there = displaced(grey, torch.tensor([[[[4.0, -3.0]]]]), torch.tensor([0.65]))
    >>> [round(v, 3) for v in there.flatten().tolist()]  # the first one stopped at 1
    [1.0, 0.085]
    """
    g = direction.flatten(1).double()
    room = torch.where(g > 0, 1 - x.flatten(1), x.flatten(1)).double()
    s = scale(g.abs().clamp_min(1e-12), room, size.double())
    moved = torch.minimum(s[:, None] * g.abs(), room).copysign(g)
    return (x + moved.view_as(x).to(x)).clamp(0, 1)


def scale(g: Tensor, room: Tensor, size: Tensor) -> Tensor:
    """The s for which ``min(s * g, room)`` has the norm ``size``; the largest useful s if there is none."""
    stop, order = (room / g).sort(1)
    stopped = room.gather(1, order).square().cumsum(1)
    moving = g.gather(1, order).square().flip(1).cumsum(1).flip(1)  # from this pixel on
    before = torch.cat([torch.zeros_like(stopped[:, :1]), stopped[:, :-1]], 1)
    reached = before + stop.square() * moving  # squared distance at each pixel's stop
    k = torch.searchsorted(reached, size.square()[:, None], right=True)
    last = k.clamp_max(g.shape[1] - 1)
    s = (size.square()[:, None] - before.gather(1, last)).clamp_min(0) / moving.gather(1, last)
    return torch.where(k == g.shape[1], stop[:, -1:], s.sqrt())[:, 0]
