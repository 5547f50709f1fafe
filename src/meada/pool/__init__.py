"""The growing training set D: the source images, then one block of harder samples per round."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from meada.errors import MeadaError
from meada.files import read_bytes, write_npy
from meada.images.inputs import as_images, as_labels
from meada.machine.distributed import World
from meada.machine.limits import map_npy
from meada.pool.storage import BlockFile, DiskImages, check_block, exchange, read_block
from meada.types import Batch, Images, Labels

Store = Literal["float32", "uint8"]


@dataclass(frozen=True)
class Block:
    """The samples added in one round; round 0 is the source."""

    images: Tensor | DiskImages  # floats in [0, 1] or 8 bits, in memory or on disk
    labels: Labels
    domains: Labels  # which source domain each sample descends from
    sources: Labels  # which source sample each descends from
    parents: Labels  # which pool sample each was made of


class Pool:
    """Blocks in order of rounds; block 0 is the source and never changes.

    Args:
        store: how new samples are held: ``float32`` as they are, or ``uint8``, rounded.
        folder: where new blocks are written as they come, so that a killed run finds them again.
        memory: bytes of images above which new blocks stay on disk and are read by memory-mapping.

    >>> pool = Pool(torch.rand(4, 3, 8, 8), torch.tensor([0, 1, 2, 3]))
    >>> pool.append(torch.rand(4, 3, 8, 8), parents=torch.arange(4))
    >>> len(pool), [len(block.labels) for block in pool.blocks]
    (8, [4, 4])
    """

    def __init__(
        self, images: Tensor | DiskImages, labels: Tensor, domains: Tensor | None = None, *, store: Store = "float32",
        folder: Path | None = None, memory: int = 2 << 30,
    ) -> None:  # fmt: skip
        if not isinstance(images, DiskImages):  # those were checked when they were written
            images = as_images(images)
        if len(images) == 0:
            raise MeadaError("the source must have at least one labelled image, got none")
        labels = as_labels(labels, len(images))
        everyone = torch.arange(len(labels))
        domains = torch.zeros_like(labels) if domains is None else domains
        if len(domains) != len(labels):
            raise MeadaError(f"there must be one domain per image, got {len(labels)} images and {len(domains)} domains")
        self.blocks = [Block(images, labels, domains, everyone, everyone)]
        self.dtype = torch.uint8 if store == "uint8" else torch.promote_types(torch.float32, images.dtype)
        self.folder, self.memory = folder, memory
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    def __len__(self) -> int:
        return sum(len(block.labels) for block in self.blocks)

    @property
    def rounds(self) -> int:
        return len(self.blocks) - 1

    @cached_property
    def labels(self) -> Labels:
        return torch.cat([block.labels for block in self.blocks])

    @cached_property
    def domains(self) -> Labels:
        return torch.cat([block.domains for block in self.blocks])

    @cached_property
    def sources(self) -> Labels:
        return torch.cat([block.sources for block in self.blocks])

    def batch(self, index: Labels, view: Callable[[Tensor], Tensor] | None = None) -> Batch:
        """The samples at ``index``, images as floats in [0, 1].

        ``view`` is given the images as they are held: what only moves pixels is four times as quick in 8 bits.
        """
        images = self.images(index) if view is None else as_float(view(self.held(index)))
        return Batch(images, self.labels[index], self.domains[index], index)

    def images(self, index: Labels) -> Images:
        return as_float(self.held(index))

    def held(self, index: Labels) -> Tensor:
        """The images at ``index`` in 8 bits if every block is in 8 bits, else as floats."""
        if len(self.blocks) == 1:
            return _rows(self.blocks[0].images, index)
        bytes_ = all(block.images.dtype == torch.uint8 for block in self.blocks)
        dtype = torch.uint8 if bytes_ else torch.get_default_dtype()
        out = torch.empty(len(index), *self.blocks[0].images.shape[1:], dtype=dtype)
        start = 0
        for block in self.blocks:
            here = ((index >= start) & (index < start + len(block.labels))).nonzero().flatten()
            if len(here):
                some = _rows(block.images, index[here] - start)
                out.numpy()[here.numpy()] = (some if bytes_ else as_float(some)).numpy()
            start += len(block.labels)
        return out

    def append(self, images: Images, parents: Labels) -> None:
        """Add a complete block; each sample's source is that of its parent."""
        growth = self.grow(parents)
        growth.write(images[growth.done :])
        growth.close()

    def grow(self, parents: Labels, origin: str = "", world: World | None = None) -> "Growth":
        """Begin a block with one child for each of ``parents``; see :class:`Growth`.

        ``origin`` says what the children are made with: a block that an earlier process left unfinished is carried on
        only if its origin is the same. Several processes in a ``world`` write the block together.
        """
        return Growth(self, parents, origin, world or World())

    def adopt(self, rounds: int) -> None:
        """Reload the first ``rounds`` blocks that an earlier process finished in ``folder``."""
        assert self.folder is not None
        while self.rounds < rounds:
            path = block_path(self.folder, self.rounds + 1)
            parents = path.with_suffix(".parents.npy")
            if not (path.exists() and parents.exists()):
                raise MeadaError(f"{path}: this block of the pool is missing; train again")
            images = read_block(path, on_disk=self._spills(path.stat().st_size))
            check_block(path, len(images), images.nbytes)
            read_bytes(parents)  # refused if it is not what was written
            self._born(images, torch.from_numpy(map_npy(parents, "c")))

    def _born(self, images: Tensor | DiskImages, parents: Labels) -> None:
        self.blocks.append(Block(images, self.labels[parents], self.domains[parents], self.sources[parents], parents))
        for name in ("labels", "domains", "sources"):
            self.__dict__.pop(name, None)

    def _spills(self, more: int) -> bool:
        return sum(b.images.nbytes for b in self.blocks[1:]) + more > self.memory

    def _home(self) -> Path:
        if self.folder is not None:
            return self.folder
        self._temporary = self._temporary or tempfile.TemporaryDirectory(prefix="meada-pool-")
        return Path(self._temporary.name)


class Growth:
    """A block in progress: written piece by piece, then added to the pool.

    ``done`` samples are there already when an earlier process was killed in the middle.
    """

    def __init__(self, pool: Pool, parents: Labels, origin: str, world: World) -> None:
        self.pool, self.parents, self.world = pool, parents, world
        shape = (len(parents), *pool.blocks[0].images.shape[1:])
        self._spills = pool._spills(torch.Size(shape).numel() * pool.dtype.itemsize)
        self._file: BlockFile | None = None
        if world.size > 1 and pool.folder is None:
            raise ValueError("a pool without a folder belongs to one process")
        if pool.folder is not None or self._spills:
            path = block_path(pool._home(), pool.rounds + 1)
            self._file = BlockFile(path, shape, pool.dtype, origin, world)
            if world.is_node_writer:
                write_npy(path.with_suffix(".parents.npy"), parents.numpy())
        self._images = None if self._file else torch.empty(shape, dtype=pool.dtype)
        self.there = self._file.there.clone() if self._file else torch.zeros(shape[0]).byte()
        self._before = self.done

    @property
    def done(self) -> int:
        """Number of samples written, as far as this process knows."""
        return int(self.there.sum())

    @property
    def reckoned(self) -> int:
        """Estimated number of samples written, if the other processes are as fast as this one."""
        return min(self._before + (self.done - self._before) * self.world.size, len(self.parents))

    def pieces(self, size: int) -> list[Labels]:
        """Indices of the samples still to be made, in fixed blocks of ``size``.

        Of several processes each has its share of them, whole blocks next to each other.
        """
        blocks = torch.arange(len(self.parents)).split(size)
        self._missing = [places for places in blocks if not self.there[places].all()]
        return list(self.world.mine(self._missing))

    def write(self, images: Images, at: int | None = None) -> None:
        """Write samples at ``at``, or after those already written."""
        at, held = self.done if at is None else at, as_stored(images, self.pool.dtype)
        if self._file:
            self._file.write(held, at)
        else:
            assert self._images is not None
            self._images[at : at + len(held)] = held.cpu()
        self.there[at : at + len(held)] = 1

    def close(self) -> None:
        if self.world.size > 1:
            assert self._file is not None
            exchange(self._file, self._missing, self.world)
            self.there = self._file.there
        if self.done != len(self.parents):
            raise ValueError(f"{self.done} of {len(self.parents)} samples were written")
        images = read_block(self._file.path, on_disk=self._spills) if self._file else self._images
        assert images is not None
        self.pool._born(images, self.parents)


def block_path(folder: Path, number: int) -> Path:
    return folder / f"round-{number}.npy"


def _rows(images: Tensor | DiskImages, index: Labels) -> Tensor:
    """Select images; ``index_select`` is twenty times as fast as indexing."""
    return images.index_select(0, index) if isinstance(images, Tensor) else images[index]


def as_float(images: Tensor) -> Images:
    """Convert stored images to floats in [0, 1] of the default dtype."""
    if images.dtype == torch.uint8:
        return torch.div(images, 255)  # converts and divides in one pass
    return images.to(torch.get_default_dtype())


def as_stored(images: Images, dtype: torch.dtype) -> Tensor:
    """Convert to the storage type; 8-bit values are rounded, not truncated.

    >>> as_stored(torch.tensor([[[[0.9999]]]]), torch.uint8).item()
    255
    """
    return images.mul(255).round().to(dtype) if dtype == torch.uint8 else images.to(dtype)
