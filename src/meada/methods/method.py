"""A training method: a loss, a function that grows the pool in each round, and optional parts."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim import Optimizer

from meada.machine.distributed import World
from meada.machine.terminal import Count
from meada.pool import Pool
from meada.types import Batch, Families, Scalar


@dataclass(frozen=True)
class Parts:
    """Additional modules and optimisers of a method: trained, moved, saved and resumed with the network.

    Each step, the loss is differentiated once and every optimiser here steps next to the network's.
    """

    modules: nn.ModuleDict = field(default_factory=nn.ModuleDict)
    optimisers: dict[str, Optimizer] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Context:
    """Arguments of a method's functions, such as the step and random generators."""

    generator: torch.Generator = field(default_factory=torch.Generator)  # of this step or round
    own: torch.Generator | None = None  # of this process; nothing: the same one
    seed: int = 0
    step: int = 0  # minimisation steps done
    total_steps: int = 1
    batch_index: int = 0  # of this batch in its pass over the pool
    batches: int = 1  # in this pass
    pool_size: int = 0
    domains: tuple[int, ...] = ()  # numbers that the pool's source domains go by, in order
    round: int = 0  # maximisation rounds done
    embedding: str | None = None  # the submodule whose output is z
    parts: Parts = field(default_factory=Parts)
    tell: Count = lambda done, total: None  # progress of a round
    world: World = World()  # the processes that share the work

    @property
    def each(self) -> torch.Generator:
        """Random numbers per sample; ``generator`` is for those drawn once per step.

        Processes that share a batch draw the same from ``generator``, each its own from this one.
        """
        return self.own or self.generator


Loss = Callable[[nn.Module, Batch, Context], Scalar]
Grow = Callable[[nn.Module, Pool, Context], None]
Build = Callable[[nn.Module, Batch, Context], Parts]
Adapt = Callable[[nn.Module], nn.Module]
Augment = Callable[[Tensor, torch.Generator], Tensor]  # of images as the pool holds them


def cross_entropy_loss(net: nn.Module, batch: Batch, context: Context) -> Scalar:
    """Cross-entropy, averaged over the batch."""
    return cross_entropy(net(batch.x), batch.y)


def no_parts(net: nn.Module, example: Batch, context: Context) -> Parts:
    return Parts()


def unchanged(net: nn.Module) -> nn.Module:
    return net


@dataclass(frozen=True, kw_only=True)
class Method:
    """The slots of a training method, called with positional arguments; ``Method()`` is ERM.

    Args:
        loss: ``loss(net, batch, context)``: what a minimisation step descends, one number for the batch.
        grow: ``grow(net, pool, context)``: a maximisation round. It adds images with
            ``pool.append(images, parents=index)``, one parent (a position in the pool) per image, and
            returns nothing; ``pool.images(index)`` and ``pool.labels`` are what is there.
        build: ``build(net, batch, context)``: :class:`Parts`, found again as ``context.parts``; ``batch`` is there to
            read shapes from.
        adapt: ``adapt(net)``: the network that is trained in place of the given one.
        growth: ``growth(n, rounds)``: the pool's size after that number of rounds, from ``n`` source images.
        augment: ``augment(images, generator)``: a training batch's images as the pool holds them (8 bits or floats in
            [0, 1]), changed.
    """

    loss: Loss = cross_entropy_loss
    grow: Grow = lambda net, pool, context: None
    build: Build = no_parts
    adapt: Adapt = unchanged
    growth: Callable[[int, int], int] = lambda n, rounds: n
    augment: Augment | None = None
    families: Families = frozenset()  # the kinds of image change that it trains on
    title: str = ""  # for tables and reports
    about: str = ""  # one sentence for somebody who has not read the paper
    passes: tuple[float, float] = (1.0, 1.0)  # forward and backward passes over a batch per step (ERM: 1, 1)
