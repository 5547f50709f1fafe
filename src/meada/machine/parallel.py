"""Minimisation phase on several processes: each descends on its share, all with one gradient."""

import warnings
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from meada.errors import MeadaError
from meada.machine.distributed import World
from meada.types import Batch, Scalar

Loss = Callable[..., Scalar]  # of the network, a batch and a method's context


class Step(nn.Module):
    """A method's loss as a module: wrapped whole, the loss sees the bare network and its parts.

    So hooks, names of submodules, functional calls and gradients of inputs work inside it as they
    do on one process, and the gradients of the parts are averaged with the network's.
    """

    def __init__(self, net: nn.Module, parts: nn.ModuleDict, loss: Loss) -> None:
        super().__init__()
        self.net, self.parts, self.loss = net, parts, loss

    def forward(self, batch: Batch, context: object, weight: float) -> Scalar:
        return weight * self.loss(self.net, batch, context)


class Together:
    """``loss`` on this process's share of a batch; its gradient is that of the whole batch."""

    def __init__(
        self,
        net: nn.Module,
        parts: nn.ModuleDict,
        loss: Loss,
        world: World,
        *,
        unused_vary: bool = False,
    ) -> None:
        """``unused_vary``: which weights have no gradient changes from step to step."""
        self.net, self.parts, self.world = net, parts, world
        with warnings.catch_warnings():
            # ``broadcast_buffers`` has another name in new releases, which older ones do not know
            warnings.simplefilter("ignore", FutureWarning)
            self.step = DistributedDataParallel(
                Step(net, parts, loss),
                broadcast_buffers=False,  # ``agree`` averages them instead
                find_unused_parameters=unused_vary,
                static_graph=not unused_vary,
            )

    def __call__(self, batch: Batch, context: object, weight: float) -> Scalar:
        value: Tensor = self.step(batch, context, weight)
        return value

    def agree(self, value: Tensor) -> Tensor:
        """The loss of the whole batch; and buffers (batch-norm statistics) averaged on the way."""
        buffers = [b for b in self._buffers() if b.is_floating_point()]
        flat = torch.cat([value.reshape(1), *(b.reshape(-1).to(value) for b in buffers)])
        flat = self.world.total(flat) / self.world.size
        sizes = [1, *(b.numel() for b in buffers)]
        mean, *averaged = flat.split(sizes)
        for buffer, one in zip(buffers, averaged, strict=True):
            buffer.copy_(one.view_as(buffer))
        return mean[0]

    def _buffers(self) -> Iterable[Tensor]:
        yield from self.net.buffers()
        yield from self.parts.buffers()


def synchronised(net: nn.Module, *, wanted: bool, world: World, device: torch.device) -> nn.Module:
    """Batch norm over the batches of all processes, where the recipe asks for it."""
    if not wanted or world.size == 1:  # one process has the whole batch anyway
        return net
    if device.type != "cuda":
        raise MeadaError(
            f"sync_batch_norm is true: torch has it for GPUs alone, and this run is on the "
            f"{device.type}; set sync_batch_norm=false (each process then normalises its share) "
            "or run one process"
        )
    return nn.SyncBatchNorm.convert_sync_batchnorm(net)
