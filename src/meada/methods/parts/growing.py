"""Add the samples of a round to the pool: which samples are copied, and the copies made block by block."""

from collections.abc import Callable
from typing import Literal

import torch

from meada.methods.method import Context
from meada.pool import Pool
from meada.types import Images, Labels

Rule = Literal["pool", "latest", "source"]


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


def append_in_blocks(
    pool: Pool, parents: Labels, children: Callable[[Labels], Images], context: Context, *, block: int, kind: str = ""
) -> None:
    """Give each of ``parents`` a child; ``children`` makes those of up to ``block`` parents.

    Progress is told after each block. What an earlier process wrote for the same seed, step and
    ``kind`` of children is not made again; several processes share the blocks out.
    """
    origin = f"{kind}seed {context.seed}, step {context.step}"
    growth = pool.grow(parents, origin, context.world)
    context.tell(growth.reckoned, len(parents))  # a block may take minutes
    for places in growth.pieces(block):
        growth.write(children(parents[places]), at=int(places[0]))
        context.tell(growth.reckoned, len(parents))
    growth.close()
