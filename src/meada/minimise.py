"""Minimisation phase: fit the network to the pool."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from meada.errors import MeadaError, NonFiniteError
from meada.machine.distributed import ParallelLoss
from meada.methods.method import Augment, Context, Loss, Parts
from meada.methods.parts.descent import Descent
from meada.methods.parts.domains import EachDomain
from meada.pool import Pool
from meada.streams import key, stream
from meada.types import Batch, Labels


@dataclass
class Training:
    """The state of Algorithm 1, which a checkpoint contains."""

    net: nn.Module
    optimiser: Optimizer
    parts: Parts = field(default_factory=Parts)
    step: int = 0  # minimisation steps done
    round: int = 0  # maximisation rounds done
    epoch: int = 0  # passes over the pool begun
    position: int = 0  # batches taken from this pass

    @property
    def optimisers(self) -> list[Optimizer]:
        return [self.optimiser, *self.parts.optimisers.values()]

    def next_epoch(self) -> None:
        """Start a new epoch, also if the pool grew during one."""
        self.epoch, self.position = self.epoch + 1, 0


def minimise(
    training: Training, pool: Pool, loss: Loss, descent: Descent, context: Context, *,
    parallel_loss: ParallelLoss | None = None, augment: Augment | None = None, until: int, batch_size: int,
) -> Iterator[Tensor]:  # fmt: skip
    """Train until ``training.step`` is ``until``; yield the loss after each step.

    Every random number is keyed by seed and step, so a resumed run draws what it would have drawn.
    With ``parallel_loss`` all processes draw the same batches, and each takes its share of them.
    """
    net, world = training.net, context.world
    own = (world.rank,) if world.size > 1 else ()
    each = isinstance(loss, EachDomain)
    batches = batches_per_epoch(pool, batch_size, each=each)
    for index in batch_indices(training, pool, context.seed, until=until, batch_size=batch_size, each=each):
        net.train()
        torch.manual_seed(key(context.seed, "network", training.step, *own))  # dropout, its like
        index, weight = world.share(index, len(index) // batch_size if each else 1)
        here = replace(
            context, generator=stream(context.seed, "loss", training.step),
            own=stream(context.seed, "loss", training.step, *own) if own else None,
            step=training.step, batch_index=training.position, batches=batches, pool_size=len(pool),
            round=training.round,
        )  # fmt: skip
        batch = to_device(pool.batch(index, through(augment, here.each)), net)
        value = descend(training, loss, batch, here, descent, parallel_loss, weight)
        training.step += 1
        training.position += 1
        yield value


def through(augment: Augment | None, generator: torch.Generator) -> Callable[[Tensor], Tensor] | None:
    """``augment`` as a function of images alone; None without augmentation."""
    return None if augment is None else lambda images: augment(images, generator)


def descend(
    training: Training, loss: Loss, batch: Batch, context: Context, descent: Descent,
    parallel_loss: ParallelLoss | None = None, weight: float = 1.0,
) -> Tensor:  # fmt: skip
    """One step of every optimiser on one loss."""
    descent.set_rate(training.optimiser, context.step, context.total_steps)
    for optimiser in training.optimisers:
        optimiser.zero_grad()
    value = parallel_loss(batch, context, weight) if parallel_loss else loss(training.net, batch, context)
    if not isinstance(value, Tensor) or value.numel() != 1:
        found = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
        raise MeadaError(f"a method's loss must be one number for the whole batch, as a tensor, got {found}")
    value.backward()
    for optimiser in training.optimisers:
        optimiser.step()
    return parallel_loss.agree(value.detach()) if parallel_loss else value.detach()


def batch_indices(
    training: Training, pool: Pool, seed: int, *, until: int, batch_size: int, each: bool = False
) -> Iterator[Labels]:
    """Uniform batches of D without replacement within an epoch; the last batch may be smaller.

    With ``each``, ``batch_size`` from every domain, one after the other: each goes through its own passes; an epoch
    ends when the largest one has been seen whole, and by then the smaller ones have come round again.
    """
    batches = batches_per_epoch(pool, batch_size, each=each)
    members = [(pool.domains == d).nonzero().flatten() for d in pool.domains.unique()] if each else []
    while training.step < until:
        if training.position >= batches:
            training.next_epoch()
        names = seed, "order", training.epoch
        if each:
            orders = [_permutations(of_one, batches * batch_size, (*names, k)) for k, of_one in enumerate(members)]
            steps = [torch.cat(index) for index in zip(*(order.split(batch_size) for order in orders), strict=True)]
        else:
            steps = list(torch.randperm(len(pool), generator=stream(*names)).split(batch_size))
        for index in steps[training.position :]:
            if training.step == until:
                return
            yield index


def batches_per_epoch(pool: Pool, batch_size: int, *, each: bool) -> int:
    """Batches per epoch of the pool, or of its largest domain if ``each`` domain has its own batches."""
    n = int(pool.domains.unique(return_counts=True)[1].max()) if each else len(pool)
    return -(-n // batch_size)


def _permutations(of_one: Tensor, n: int, names: tuple[int | str, ...]) -> Tensor:
    """The first ``n`` indices of consecutive permutations."""
    times = -(-n // len(of_one))
    orders = [torch.randperm(len(of_one), generator=stream(*names, time)) for time in range(times)]
    return of_one[torch.cat(orders)[:n]]


def refuse_non_finite(value: float, step: int) -> None:
    if not torch.isfinite(torch.tensor(value)):
        raise NonFiniteError(f"step {step} of the minimisation phase: the loss is {value}; lower the learning rate")


def to_device(batch: Batch, net: nn.Module) -> Batch:
    """Move the batch to the network's device."""
    device = next(net.parameters()).device
    x, y = batch.x.to(device, non_blocking=True), batch.y.to(device, non_blocking=True)
    domain = None if batch.domain is None else batch.domain.to(device, non_blocking=True)
    return batch._replace(x=x, y=y, domain=domain)  # the index keys random numbers drawn on the CPU
