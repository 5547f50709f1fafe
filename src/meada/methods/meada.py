"""ADA (Volpi et al., 2018) and ME-ADA (Zhao et al., 2020): grow the pool with harder copies."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import torch
from torch import nn

from meada.entropy import Uncertainty
from meada.errors import MeadaError, NonFiniteError, check_range
from meada.maximise import perturb
from meada.methods.method import Context, Method
from meada.networks.posterior import Posterior, Renewal
from meada.pool import Pool
from meada.streams import key
from meada.types import Images, Labels
from meada.units import Units, per_sample

GrowthRule = Literal["pool", "latest", "source"]
PARENTS: dict[str, Callable[[Pool], Labels]] = {
    # Algorithm 1: every sample of D, so D doubles
    "pool": lambda pool: torch.arange(len(pool)),
    # the paper's equation for X_i^k: N new ones from the round before
    "latest": lambda pool: torch.arange(len(pool) - len(pool.blocks[-1].labels), len(pool)),
    # N new ones from the source each time
    "source": lambda pool: torch.arange(len(pool.blocks[0].labels)),
}
GROWTH: dict[str, Callable[[int, int], int]] = {
    "pool": lambda n, rounds: n * 2**rounds,
    "latest": lambda n, rounds: n * (1 + rounds),
    "source": lambda n, rounds: n * (1 + rounds),
}


def meada(
    *,
    beta: float = 10.0,
    gamma: float = 1 / 1024,  # the paper's 1.0 on digits: its cost is a mean over 1024 coordinates
    step_size: float = 1 / 32,  # the paper's eta of 1.0 on digits: a step on the mean of 32 losses
    steps: int = 15,
    units: Units = "sample",
    units_batch: int = 32,
    grow: GrowthRule = "pool",
    block: int = 128,
    stochastic: Sequence[str] = (),
    posterior_draws: int = 5,
    draws: Renewal = "shared",
    uncertainty: Uncertainty = "expected",
) -> Method:
    """Algorithm 1.

    Args:
        beta: weight of the prediction's entropy; 0 is ADA.
        gamma: weight of the transport cost.
        step_size: the paper's eta.
        steps: the paper's T_max.
        units: ``sample`` as :func:`meada.perturb` takes them; ``official``, the published code's for batches of
            ``units_batch``; or ``pixels``, steps of a fixed length (see :mod:`meada.units`).
        grow: which samples a round perturbs: all of the pool, the latest block, or the source.
        block: samples climbed at once; fixed, so that a run is the same to the bit.
        stochastic, posterior_draws, draws, uncertainty: for networks that are random, as
            :func:`meada.perturb` takes them; without a meaning for any other.
    """
    if grow not in GROWTH:
        raise MeadaError(f"meada: grow must be 'pool', 'latest' or 'source', got '{grow}'")
    check_range("meada", "[0, inf)", steps=steps)
    check_range("meada", "[1, inf)", block=block, units_batch=units_batch, posterior_draws=posterior_draws)

    def ascent(net: nn.Module, x: Images, context: Context) -> Callable[..., Images]:
        eta, weight = per_sample(
            units, net, x, step_size=step_size, gamma=gamma, batch=units_batch, embedding=context.embedding
        )
        return partial(
            perturb, beta=beta, gamma=weight, step_size=eta, steps=steps, unit=units == "pixels", block=block,
            embedding=context.embedding, posterior=Posterior(
                samples=posterior_draws, stochastic=stochastic, draws=draws, uncertainty=uncertainty,
                seed=key(context.seed, "ascent", context.round),
            ),
        )  # fmt: skip

    return Method(
        grow=partial(harden, ascent=ascent, parents=PARENTS[grow], block=block),
        growth=GROWTH[grow],
        title="ME-ADA" if beta else "ADA",
        about="Between training phases, add images moved by gradient ascent on the loss"
        + (" and on the prediction's entropy." if beta else "."),
    )


ada = partial(meada, beta=0.0)


def harden(
    net: nn.Module, pool: Pool, context: Context, *, ascent: Callable[..., Callable[..., Images]],
    parents: Callable[[Pool], Labels], block: int,
) -> None:  # fmt: skip
    """Append to the pool a harder copy of each parent, block by block."""
    chosen, device = parents(pool), next(net.parameters()).device
    climb = ascent(net, pool.images(chosen[:1]).to(device), context)

    def harder(index: Labels) -> Images:
        batch = pool.batch(index)
        try:
            return climb(net, batch.x.to(device), batch.y.to(device))
        except NonFiniteError as error:
            raise NonFiniteError(f"round {context.round + 1}, {error}") from None

    append_in_blocks(pool, chosen, harder, context, block=block)


def append_in_blocks(
    pool: Pool, parents: Labels, children: Callable[[Labels], Images], context: Context, *, block: int, kind: str = ""
) -> None:
    """Append one child per parent; ``children`` makes those of up to ``block`` parents.

    Progress is reported after each block. What an earlier process wrote for the same seed, step and
    ``kind`` of children is not made again; several processes share the blocks out.
    """
    origin = f"{kind}seed {context.seed}, step {context.step}"
    growth = pool.grow(parents, origin, context.world)
    context.tell(growth.reckoned, len(parents))  # a block may take minutes
    for places in growth.pieces(block):
        growth.write(children(parents[places]), at=int(places[0]))
        context.tell(growth.reckoned, len(parents))
    growth.close()
