"""Algorithm 1 of Zhao et al. (2020), for any method: alternate minimisation and maximisation phases."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from meada.errors import MeadaError
from meada.machine.distributed import ParallelLoss, World
from meada.machine.terminal import Count
from meada.methods.method import Context, Method
from meada.methods.parts.descent import Descent
from meada.minimise import Training, minimise, to_device
from meada.networks.embedding import check_fits
from meada.pool import Pool
from meada.settings import Settings
from meada.streams import key, stream


class Plan(Settings):
    """Number of rounds and length of each phase; the defaults are those of the digits experiment.

    In epochs, ``min_steps`` and ``total_steps`` count passes over the pool as it then is.
    """

    rounds: int = Field(3, ge=0)  # the paper's K
    min_steps: int = Field(100, ge=0)  # the paper's T_min
    total_steps: int = Field(10_000, ge=0)  # the paper's T
    batch_size: int = Field(32, ge=1)
    unit: Literal["steps", "epochs"] = "steps"

    def model_post_init(self, _: object) -> None:
        if self.rounds * self.min_steps > self.total_steps:
            raise MeadaError(
                f"plan: {self.rounds} rounds of {self.min_steps} {self.unit} do not fit in "
                f"total_steps={self.total_steps}"
            )

    def in_steps(self, n: int, growth: Callable[[int, int], int]) -> tuple[list[int], int]:
        """The steps at which the rounds start, and the last step.

        >>> Plan(rounds=2, min_steps=100, total_steps=1000).in_steps(50, lambda n, k: n)
        ([100, 200], 1000)
        >>> plan = Plan(rounds=1, min_steps=2, total_steps=5, batch_size=10, unit="epochs")
        >>> plan.in_steps(100, lambda n, k: n * 2**k)  # 2 passes of 10 batches, 3 of 20
        ([20], 80)
        """
        each = [1] * (self.rounds + 1)
        if self.unit == "epochs":
            each = [-(-growth(n, k) // self.batch_size) for k in range(self.rounds + 1)]
        ends = [self.min_steps * sum(each[: k + 1]) for k in range(self.rounds)]
        rest = (self.total_steps - self.rounds * self.min_steps) * each[-1]
        return ends, (ends[-1] if ends else 0) + rest


def nothing(*_: object) -> None:
    """Default callback of :class:`Watch`: do nothing."""


@dataclass(frozen=True)
class Watch:
    """Functions that are called during training, to show or save progress."""

    stepped: Callable[[Training, Tensor], None] = nothing  # after a minimisation step: its loss
    ascending: Callable[[Training], None] = nothing  # before a maximisation round
    climbed: Count = nothing  # within it: samples done, of how many
    grown: Callable[[Training, Pool], None] = nothing  # after it


def begin(
    net: nn.Module, pool: Pool, method: Method, descent: Descent, *, seed: int = 0, embedding: str | None = None
) -> Training:
    """State at step 0: the network, its optimiser, and the method's own modules."""
    domains, generator = tuple(pool.domains.unique().tolist()), stream(seed, "parts")
    context = Context(seed=seed, generator=generator, embedding=embedding, pool_size=len(pool), domains=domains)
    with torch.random.fork_rng():
        torch.manual_seed(key(seed, "parts"))
        example = to_device(pool.batch(torch.arange(min(2, len(pool)))), net)
        check_fits(net, example.x, pool.labels)
        parts = method.build(net, example, context)
    return Training(net, descent.build(net.parameters()), parts)


def train(
    training: Training, pool: Pool, method: Method, plan: Plan, descent: Descent, *, seed: int = 0,
    embedding: str | None = None, watch: Watch | None = None, world: World | None = None,
) -> None:  # fmt: skip
    """Train from the current step to the end of the plan; several processes share the work."""
    watch, world = watch or Watch(), world or World()
    ends, total = plan.in_steps(len(pool.blocks[0].labels), method.growth)
    context = Context(
        seed=seed, total_steps=total, embedding=embedding, domains=tuple(pool.domains.unique().tolist()),
        parts=training.parts, tell=watch.climbed, world=world,
    )  # fmt: skip
    parts, parallel_loss = training.parts, None
    if world.size > 1:  # parts with optimisers of their own rest for a while: their gradients come and go
        vary = bool(parts.optimisers)
        parallel_loss = ParallelLoss(training.net, parts.modules, method.loss, world, unused_vary=vary)

    def fit(until: int) -> None:
        for loss in minimise(
            training, pool, method.loss, descent, context,
            parallel_loss=parallel_loss, augment=method.augment, until=until, batch_size=plan.batch_size,
        ):  # fmt: skip
            watch.stepped(training, loss)

    with torch.random.fork_rng():  # the caller's own stream is left alone
        for k in range(training.round, plan.rounds):
            fit(until=ends[k])
            watch.ascending(training)
            torch.manual_seed(key(seed, "ascent", k))
            method.grow(training.net, pool, replace(
                context, generator=stream(seed, "grow", k), step=training.step, round=k,
                pool_size=len(pool),
            ))  # fmt: skip
            training.round = k + 1
            training.next_epoch()
            watch.grown(training, pool)
        fit(until=total)
