"""One run on several processes started by torchrun: their ranks, their shares of a batch, sums over all of them.

In the minimisation phase each takes its share of a batch, and all step with one gradient.
"""

import os
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from types import FrameType
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from meada.errors import MeadaError, one_line
from meada.types import Batch, Labels, Scalar

T = TypeVar("T")
PATIENCE = 600.0  # seconds that processes wait for each other: above the longest work of one alone
MIN_SAMPLES = 2  # samples at least for each process: batch norm cannot do with one
RESUME_HINT = "--resume continues the run from its last checkpoint, on any number of processes"


@dataclass(frozen=True)
class World:
    """``World()`` is one process alone."""

    rank: int = 0
    size: int = 1
    local: int = 0  # its number on its own machine
    shared: bool = True  # all processes see the same run folder

    @property
    def is_main(self) -> bool:
        """Whether this process writes records, checkpoints, log and progress."""
        return self.rank == 0

    @property
    def is_node_writer(self) -> bool:
        """Whether this process manages a folder: the only one of all processes, or of its machine."""
        return self.rank == 0 if self.shared else self.local == 0

    def barrier(self) -> None:
        if self.size > 1:
            self.all_reduce_sum(torch.zeros(1))  # on the CPU with either backend

    def all_reduce_sum(self, values: Tensor) -> Tensor:
        """Sum over the processes, in place."""
        if self.size > 1:
            dist.all_reduce(values)
        return values

    def all_reduce_min(self, values: Tensor) -> Tensor:
        if self.size > 1:
            dist.all_reduce(values, dist.ReduceOp.MIN)
        return values

    def broadcast(self, content: bytes, source: int = 0) -> bytes:
        """Send the value of process ``source`` to every process."""
        if self.size == 1:
            return content
        length = torch.tensor([len(content)])
        dist.broadcast(length, source)
        held = torch.empty(int(length), dtype=torch.uint8)
        if self.rank == source:
            held = torch.frombuffer(bytearray(content), dtype=torch.uint8) if content else held
        dist.broadcast(held, source)
        return held.numpy().tobytes()

    def align(self, module: nn.Module) -> None:
        """Copy weights and buffers of the first process to all others."""
        if self.size > 1:
            for value in module.state_dict().values():
                dist.broadcast(value, 0)

    def mine(self, items: Sequence[T]) -> Sequence[T]:
        """This process's consecutive share of ``items``; all processes together have each item once.

        >>> [World(rank, 3).mine(range(7)) for rank in range(3)]
        [range(0, 3), range(3, 5), range(5, 7)]
        """
        each, more = divmod(len(items), self.size)
        start = self.rank * each + min(self.rank, more)
        return items[start : start + each + (self.rank < more)]

    def share(self, index: Labels, pieces: int = 1) -> tuple[Tensor, float]:
        """This process's part of a batch (of each of its equal ``pieces``), and its weight.

        The mean over the processes of weight times mean loss is the mean loss of the batch. A batch
        that is too small to share out is taken whole by everyone.

        >>> [World(rank, 2).share(torch.arange(5)) for rank in range(2)]
        [(tensor([0, 1, 2]), 1.2), (tensor([3, 4]), 0.8)]
        >>> World(1, 2).share(torch.arange(8), pieces=2)  # as when a batch has two domains
        (tensor([2, 3, 6, 7]), 1.0)
        """
        parts = index.chunk(pieces)
        if self.size == 1 or min(len(part) for part in parts) < MIN_SAMPLES * self.size:
            return index, 1.0
        own = torch.cat([part.tensor_split(self.size)[self.rank] for part in parts])
        return own, len(own) * self.size / len(index)

    def sees(self, content: bytes | None) -> bool:
        """Whether every process reads the first one's ``content`` in the folder: a shared file system."""
        same = self.broadcast(content or b"") == (content or b"")
        return bool(self.all_reduce_min(torch.tensor([int(same)])))


def world_from_env() -> World:
    """This process's rank and the number of processes, from torchrun's environment variables."""
    names = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    if any(name not in os.environ for name in names) or os.environ["WORLD_SIZE"] == "1":
        return World()
    number = lambda name: int(os.environ.get(name, "0"))
    return World(number("RANK"), number("WORLD_SIZE"), number("LOCAL_RANK"))


@contextmanager
def process_group(device: torch.device) -> Iterator[World]:
    """Initialise the process group: gloo for CPUs, NCCL for GPUs.

    Who has joined before stays so: a second run in the same processes needs no second meeting.
    """
    world = world_from_env()
    if world.size == 1 or dist.is_initialized():
        yield world
        return
    if device.type == "mps":
        raise MeadaError("device must be cpu or cuda with several processes, got 'mps'")
    if device.type == "cuda":
        torch.cuda.set_device(world.local)
    before = signal.signal(signal.SIGTERM, _on_sigterm)
    try:
        # Its functions take the world's group as a default when it is first imported. Imported later
        # (``DistributedDataParallel`` does), it would hold the group beyond its end, with gloo's
        # threads, and one of them that still lets go of a tensor while Python shuts down aborts.
        import_module("torch.distributed.nn")
        patience = timedelta(seconds=float(os.environ.get("MEADA_PATIENCE", PATIENCE)))
        dist.init_process_group("cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo", timeout=patience)
        yield world
        world.barrier()
        dist.destroy_process_group()
    except RuntimeError as error:
        signs = ("gloo", "NCCL", "Connection", "Broken pipe", "Timed out", "timeout")
        if not isinstance(error, dist.DistError) and not any(sign in str(error) for sign in signs):
            raise
        raise MeadaError(f"lost the other processes ({one_line(error)}); {RESUME_HINT}") from None
    finally:
        signal.signal(signal.SIGTERM, before)


def _on_sigterm(number: int, frame: FrameType | None) -> None:
    """Explain the SIGTERM that torchrun sends to all processes when one has ended."""
    raise MeadaError(f"stopped by signal {number}, which torchrun sends when another process has ended; {RESUME_HINT}")


Loss = Callable[..., Scalar]  # of the network, a batch and a method's context


class LossModule(nn.Module):
    """A method's loss as a module: wrapped whole, the loss sees the bare network and its parts.

    So hooks, names of submodules, functional calls and gradients of inputs work inside it as they
    do on one process, and the gradients of the parts are averaged with the network's.
    """

    def __init__(self, net: nn.Module, parts: nn.ModuleDict, loss: Loss) -> None:
        super().__init__()
        self.net, self.parts, self.loss = net, parts, loss

    def forward(self, batch: Batch, context: object, weight: float) -> Scalar:
        return weight * self.loss(self.net, batch, context)


class ParallelLoss:
    """``loss`` on this process's share of a batch; its gradient is that of the whole batch."""

    def __init__(
        self, net: nn.Module, parts: nn.ModuleDict, loss: Loss, world: World, *, unused_vary: bool = False
    ) -> None:
        """``unused_vary``: the set of weights without a gradient changes from step to step."""
        self.net, self.parts, self.world = net, parts, world
        with warnings.catch_warnings():
            # ``broadcast_buffers`` has another name in new releases, which older ones do not know
            warnings.simplefilter("ignore", FutureWarning)
            self.step = DistributedDataParallel(
                LossModule(net, parts, loss),
                broadcast_buffers=False,  # ``agree`` averages them instead
                find_unused_parameters=unused_vary,
                static_graph=not unused_vary,
            )

    def __call__(self, batch: Batch, context: object, weight: float) -> Scalar:
        value: Tensor = self.step(batch, context, weight)
        return value

    def agree(self, value: Tensor) -> Tensor:
        """The loss of the whole batch; buffers (batch-norm statistics) are averaged too."""
        buffers = [b for own in (self.net, self.parts) for b in own.buffers() if b.is_floating_point()]
        flat = torch.cat([value.reshape(1), *(b.reshape(-1).to(value) for b in buffers)])
        flat = self.world.all_reduce_sum(flat) / self.world.size
        mean, *averaged = flat.split([1, *(b.numel() for b in buffers)])
        for buffer, one in zip(buffers, averaged, strict=True):
            buffer.copy_(one.view_as(buffer))
        return mean[0]


def synchronise_batch_norm(net: nn.Module, *, wanted: bool, world: World, device: torch.device) -> nn.Module:
    """Synchronise batch norm over all processes if the recipe sets it."""
    if not wanted or world.size == 1:  # one process has the whole batch anyway
        return net
    if device.type != "cuda":
        raise MeadaError(
            f"sync_batch_norm must be false on the {device.type} with several processes (torch has it for GPUs only), "
            "got true; with false each process normalises its own share"
        )
    return nn.SyncBatchNorm.convert_sync_batchnorm(net)
