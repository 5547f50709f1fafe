"""The growing training set D: the source, then one block of harder samples a round."""

import tempfile
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from meada.errors import MeadaError
from meada.files import write_bytes
from meada.storage import BlockFile, DiskImages, read_block
from meada.types import Batch, Images, Labels

Store = Literal["float32", "uint8"]


@dataclass(frozen=True)
class Block:
    """The samples born in one round; round 0 is the source."""

    images: Tensor | DiskImages  # floats in [0, 1] or 8 bits, in memory or on disk
    labels: Labels
    domains: Labels  # which source domain each sample descends from
    sources: Labels  # which source sample each descends from
    parents: Labels  # which pool sample each was made of


class Pool:
    """Blocks in order of birth; block 0 is the source and is never altered.

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
        self,
        images: Tensor,
        labels: Tensor,
        domains: Tensor | None = None,
        *,
        store: Store = "float32",
        folder: Path | None = None,
        memory: int = 2 << 30,
    ) -> None:
        _check(images, labels)
        everyone = torch.arange(len(labels))
        domains = torch.zeros_like(labels) if domains is None else domains
        self.blocks = [Block(images, labels, domains, everyone, everyone)]
        self.dtype = torch.uint8 if store == "uint8" else _wide(images.dtype)
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

    def batch(self, index: Labels) -> Batch:
        """The samples at ``index``, images as floats in [0, 1]."""
        return Batch(self.images(index), self.labels[index], self.domains[index])

    def images(self, index: Labels) -> Images:
        shape = self.blocks[0].images.shape[1:]
        out = torch.empty(len(index), *shape, dtype=torch.get_default_dtype())
        start = 0
        for block in self.blocks:
            here = (index >= start) & (index < start + len(block.labels))
            if here.any():
                out[here] = as_float(block.images[index[here] - start])
            start += len(block.labels)
        return out

    def append(self, images: Images, parents: Labels) -> None:
        """Add a block at once; what each sample descends from comes from its parent."""
        growth = self.grow(parents)
        growth.write(images[growth.done :])
        growth.close()

    def grow(self, parents: Labels, origin: str = "") -> "Growth":
        """Begin a block with one child for each of ``parents``; see :class:`Growth`.

        ``origin`` says what the children are made with: a block that an earlier process left
        unfinished is carried on only if its origin is the same.
        """
        return Growth(self, parents, origin)

    def adopt(self, rounds: int) -> None:
        """Take back the first ``rounds`` blocks that an earlier process finished in ``folder``."""
        assert self.folder is not None
        while self.rounds < rounds:
            path = block_path(self.folder, self.rounds + 1)
            parents = path.with_suffix(".parents.npy")
            if not (path.exists() and parents.exists()):
                raise MeadaError(f"{path}: the pool's block is missing; train anew")
            self._born(
                read_block(path, on_disk=self._spills(path.stat().st_size)),
                torch.from_numpy(np.load(parents, allow_pickle=False)),
            )

    def _born(self, images: Tensor | DiskImages, parents: Labels) -> None:
        block = Block(
            images, self.labels[parents], self.domains[parents], self.sources[parents], parents
        )
        self.blocks.append(block)
        for name in ("labels", "domains", "sources"):
            self.__dict__.pop(name, None)

    def _spills(self, more: int) -> bool:
        held = sum(b.images.nbytes for b in self.blocks[1:])
        return held + more > self.memory

    def _home(self) -> Path:
        if self.folder is not None:
            return self.folder
        self._temporary = self._temporary or tempfile.TemporaryDirectory(prefix="meada-pool-")
        return Path(self._temporary.name)


class Growth:
    """A block being born: written in order, piece by piece, and then part of the pool.

    ``done`` samples are there already when an earlier process was killed in the middle.
    """

    def __init__(self, pool: Pool, parents: Labels, origin: str) -> None:
        self.pool, self.parents = pool, parents
        shape = (len(parents), *pool.blocks[0].images.shape[1:])
        size = torch.Size(shape).numel() * pool.dtype.itemsize
        self._spills = pool._spills(size)
        self._file: BlockFile | None = None
        if pool.folder is not None or self._spills:
            path = block_path(pool._home(), pool.rounds + 1)
            self._file = BlockFile(path, shape, pool.dtype, origin)
            _save_array(path.with_suffix(".parents.npy"), parents)
        self._images = None if self._file else torch.empty(shape, dtype=pool.dtype)
        self.done = self._file.done if self._file else 0

    def write(self, images: Images) -> None:
        held = as_stored(images, self.pool.dtype)
        if self._file:
            self._file.write(held)
        else:
            assert self._images is not None
            self._images[self.done : self.done + len(held)] = held.cpu()
        self.done += len(held)

    def close(self) -> None:
        if self.done != len(self.parents):
            raise ValueError(f"{self.done} of {len(self.parents)} samples were written")
        if self._file:
            self.pool._born(read_block(self._file.path, on_disk=self._spills), self.parents)
        else:
            assert self._images is not None
            self.pool._born(self._images, self.parents)


def block_path(folder: Path, number: int) -> Path:
    return folder / f"round-{number}.npy"


def as_float(images: Tensor) -> Images:
    """Floats in [0, 1] of the default precision, from whatever a block holds."""
    if images.dtype == torch.uint8:
        return images.to(torch.get_default_dtype()).div_(255)
    return images.to(torch.get_default_dtype())


def as_stored(images: Images, dtype: torch.dtype) -> Tensor:
    """8 bits are rounded, not truncated.

    >>> as_stored(torch.tensor([[[[0.9999]]]]), torch.uint8).item()
    255
    """
    return images.mul(255).round().to(dtype) if dtype == torch.uint8 else images.to(dtype)


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.promote_types(torch.float32, dtype) if dtype.is_floating_point else torch.float32


def _save_array(path: Path, values: Tensor) -> None:
    buffer = BytesIO()
    np.save(buffer, values.numpy(), allow_pickle=False)
    write_bytes(path, buffer.getvalue())


def _check(images: Tensor, labels: Tensor) -> None:
    if images.ndim != 4 or len(images) != len(labels):
        raise MeadaError(
            f"images of shape {tuple(images.shape)} for {len(labels)} labels: "
            "(N, C, H, W) with N labels is needed"
        )
    if len(labels) == 0:
        raise MeadaError("the source is empty: at least one labelled image is needed")
    if images.dtype != torch.uint8 and not images.is_floating_point():
        raise MeadaError(f"images are {images.dtype}: floats in [0, 1] or uint8 are needed")
    if images.is_floating_point() and (images.amin() < 0 or images.amax() > 1):
        low, high = float(images.amin()), float(images.amax())
        raise MeadaError(f"images run from {low:g} to {high:g}: pixels in [0, 1] are needed")
