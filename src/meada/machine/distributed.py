"""One run on several processes: who they are, what each takes, and how they put it together.

torchrun starts the processes and says in environment variables which one each is; without it there
is one, and nothing here does anything.
"""

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from types import FrameType
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from meada.errors import MeadaError
from meada.types import Labels

T = TypeVar("T")
PATIENCE = 600.0  # seconds that processes wait for each other: above the longest work of one alone
TWO = 2  # samples at least for each process: batch norm cannot do with one
LOST = "--resume carries the run on from its last checkpoint, on any number of processes"


@dataclass(frozen=True)
class World:
    """``World()`` is one process alone."""

    rank: int = 0
    size: int = 1
    local: int = 0  # its number on its own machine
    shared: bool = True  # all processes see the same run folder

    @property
    def first(self) -> bool:
        """The one that writes records, checkpoints, log and progress."""
        return self.rank == 0

    @property
    def leads(self) -> bool:
        """The one that tends a folder: of all processes, or of its machine's."""
        return self.rank == 0 if self.shared else self.local == 0

    def barrier(self) -> None:
        if self.size > 1:
            self.total(torch.zeros(1))  # on the CPU with either backend

    def total(self, values: Tensor) -> Tensor:
        """Summed over the processes, in place."""
        if self.size > 1:
            dist.all_reduce(values)
        return values

    def least(self, values: Tensor) -> Tensor:
        if self.size > 1:
            dist.all_reduce(values, dist.ReduceOp.MIN)
        return values

    def hand_out(self, content: bytes, source: int = 0) -> bytes:
        """What ``source`` has, on every process."""
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
        """The weights and buffers of the first process, on every one."""
        if self.size > 1:
            for value in module.state_dict().values():
                dist.broadcast(value, 0)

    def mine(self, items: Sequence[T]) -> Sequence[T]:
        """A run of ``items`` next to each other; all processes together have each once.

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
        if self.size == 1 or min(len(part) for part in parts) < TWO * self.size:
            return index, 1.0
        own = torch.cat([part.tensor_split(self.size)[self.rank] for part in parts])
        return own, len(own) * self.size / len(index)

    def sees(self, content: bytes | None) -> bool:
        """Whether every process read ``content``, the first one's, from its own folder."""
        same = self.hand_out(content or b"") == (content or b"")
        return bool(self.least(torch.tensor([int(same)])))


def foretold() -> World:
    """Which process this one is, by torchrun's environment variables."""
    names = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    if any(name not in os.environ for name in names) or os.environ["WORLD_SIZE"] == "1":
        return World()
    number = lambda name: int(os.environ.get(name, "0"))
    return World(number("RANK"), number("WORLD_SIZE"), number("LOCAL_RANK"))


@contextmanager
def joined(device: torch.device) -> Iterator[World]:
    """All processes of the run, once they have found each other: gloo for CPUs, NCCL for GPUs.

    Who has joined before stays so: a second run in the same processes needs no second meeting.
    """
    world = foretold()
    if world.size == 1 or dist.is_initialized():
        yield world
        return
    if device.type == "mps":
        raise MeadaError("device 'mps' cannot be shared by processes: torchrun needs cpu or cuda")
    if device.type == "cuda":
        torch.cuda.set_device(world.local)
    before = signal.signal(signal.SIGTERM, _told_to_stop)
    try:
        _connect(world, device)
        yield world
        world.barrier()
        dist.destroy_process_group()
    except RuntimeError as error:
        if not _is_lost(error):
            raise
        what = str(error).splitlines()[0][:200]
        raise MeadaError(f"lost the other processes ({what}); {LOST}") from None
    finally:
        signal.signal(signal.SIGTERM, before)


def _connect(world: World, device: torch.device) -> None:
    # Its functions take the world's group as a default when it is first imported. Imported later
    # (``DistributedDataParallel`` does), it would hold the group beyond its end, with gloo's
    # threads, and one of them that still lets go of a tensor while Python shuts down aborts.
    import torch.distributed.nn  # noqa: F401

    patience = float(os.environ.get("MEADA_PATIENCE", PATIENCE))
    dist.init_process_group(
        "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo",
        timeout=timedelta(seconds=patience),
    )


def _told_to_stop(number: int, frame: FrameType | None) -> None:
    """torchrun ends all processes when one has ended: say so, instead of falling silent."""
    raise MeadaError(f"told to stop (signal {number}), as torchrun does when another one has ended; {LOST}")


def _is_lost(error: RuntimeError) -> bool:
    signs = ("gloo", "NCCL", "Connection", "Broken pipe", "Timed out", "timeout")
    return isinstance(error, dist.DistError) or any(sign in str(error) for sign in signs)
