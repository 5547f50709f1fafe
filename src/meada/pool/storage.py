"""Image blocks on disk: pre-allocated, written piece by piece with a checksum for each, memory-mapped for reading."""

import json
import os
import warnings
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from meada.errors import MeadaError
from meada.files import MAX_TEXT_BYTES, naming, regular, write_json
from meada.machine.distributed import World
from meada.machine.limits import map_npy
from meada.types import Labels

TOUCHED = 64 << 10  # bytes that the kernel maps around a page that is asked for
RESIDENT = 512 << 20  # bytes of a file on disk that may be in the process at once
NUMPY = {torch.uint8: np.uint8, torch.float32: np.float32, torch.float64: np.float64}

Marks = NDArray[np.bool_]  # one for each sample of a block


class DiskImages:
    """A finished ``.npy`` file, indexed like a tensor.

    The file is mapped, and after some reads let go of and mapped again: pages that were read do not add up.
    """

    def __init__(self, path: Path) -> None:
        array = _mapped(path)
        dtype = next((t for t, n in NUMPY.items() if array.dtype == n), None)
        if dtype is None or not array.ndim:
            raise MeadaError(f"{path} is damaged: images must be uint8 or floats, got {array.dtype}")
        self.path, self.dtype = path, dtype
        self.shape: tuple[int, ...] = tuple(array.shape)
        self._array: NDArray[Any] | None = None
        self._read = 0  # bytes that may have come into memory since the file was mapped

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def nbytes(self) -> int:
        return torch.Size(self.shape).numel() * self.dtype.itemsize

    def __getitem__(self, index: Labels | slice) -> Tensor:
        where = index.numpy() if isinstance(index, Tensor) else index
        self._array = np.asarray(_mapped(self.path)) if self._array is None else self._array
        taken = self._array[where]
        taken = taken.copy() if taken.base is not None else taken  # a slice is a view of the map
        self._read += len(taken) * max(TOUCHED, self.nbytes // max(len(self), 1))
        if self._read > RESIDENT:
            self._array, self._read = None, 0
        return torch.from_numpy(taken)


class BlockFile:
    """One ``.npy`` file of a known shape, a note of how its samples are made, and checksums of its pieces.

    A process that dies in the middle leaves all of it behind; the next ones open it and go on, however many they are.
    """

    def __init__(
        self, path: Path, shape: tuple[int, ...], dtype: torch.dtype, origin: str, world: World | None = None
    ) -> None:
        world = world or World()
        self.path, self._row = path, torch.Size(shape[1:]).numel() * dtype.itemsize
        self._sums = path.with_suffix(f".process-{world.rank}.sums" if world.rank else ".sums")
        self.there = torch.ones(shape[0], dtype=torch.uint8)  # 1: written, here or before
        world.barrier()  # nobody is still reading what the next lines replace
        if world.is_node_writer:
            about = {"shape": list(shape), "dtype": str(dtype), "origin": origin}
            self.there = torch.from_numpy(self._intact_samples(about, shape[0])).byte()
            if not self.there.any():
                for sums in _sums_of(path):
                    sums.unlink()
                header = _reserve(path, shape, dtype)
                write_json(path.with_suffix(".json"), about, checked=False)
                self._add(0, 0, header)
        world.barrier()
        world.all_reduce_min(self.there)  # on several machines: what each of them has
        world.barrier()
        self._start = path.stat().st_size - shape[0] * self._row

    def write(self, images: Tensor, at: int) -> None:
        self.put(images.contiguous().cpu().numpy().tobytes(), at, len(images))

    def put(self, content: bytes, at: int, count: int) -> None:
        """Write samples, then their checksums."""
        with naming(self.path), open(self.path, "r+b") as file:
            file.seek(self._start + at * self._row)
            file.write(content)
            file.flush()
            os.fdatasync(file.fileno())
        self._add(at, at + count, content)
        self.there[at : at + count] = 1

    def read(self, at: int, count: int) -> bytes:
        with naming(self.path), open(self.path, "rb") as file:
            file.seek(self._start + at * self._row)
            return file.read(count * self._row)

    def _intact_samples(self, about: dict[str, Any], n: int) -> Marks:
        """Mask of intact samples of an earlier process; all others are made again."""
        note = self.path.with_suffix(".json")
        if self.path.is_symlink() or not (self.path.exists() and note.exists()):  # a link is replaced, not followed
            return np.zeros(n, bool)
        there, damaged = samples_in(self.path, self._row, n)
        if not (same := _holds(note, about)) or damaged.any():
            cause = "is damaged" if same else "is damaged or of a run with other settings"
            warnings.warn(f"{self.path if same else note} {cause}: its samples are made again", stacklevel=4)
        return there & same

    def _add(self, start: int, stop: int, content: bytes) -> None:
        """Append a line to this process's checksums; the first is that of the header."""
        with naming(self._sums), open(self._sums, "a+b") as file:
            if file.tell() and os.pread(file.fileno(), 1, file.tell() - 1) != b"\n":
                file.write(b"\n")  # a process was killed while it wrote
            file.write(f"{start} {stop} {zlib.crc32(content):08x}\n".encode())


def _holds(note: Path, about: dict[str, Any]) -> bool:
    """Whether the block's note matches; notes of earlier versions have more keys."""
    try:
        held = json.loads(regular(note, MAX_TEXT_BYTES).read_text(encoding="utf-8"))
        return {key: held.get(key) for key in about} == about
    except (ValueError, AttributeError, RecursionError):
        return False


def samples_in(block: Path, row: int, n: int) -> tuple[Marks, Marks]:
    """Masks of intact and of damaged samples (``n`` of ``row`` bytes), by checksum; each piece is read once."""
    pieces, good, bad = _pieces(block), np.zeros(n, bool), np.zeros(n, bool)
    head = block.stat().st_size - n * row
    with open(block, "rb") as file:
        whole = head >= 0 and zlib.crc32(file.read(head)) in pieces.pop((0, 0), ())
        for (start, stop), sums in pieces.items():
            if whole and 0 <= start < stop <= n:
                file.seek(head + start * row)
                found = good if zlib.crc32(file.read((stop - start) * row)) in sums else bad
                found[start:stop] = True
    return good, ~good if pieces and not whole else bad & ~good


def _sums_of(block: Path) -> list[Path]:
    """Checksums of every process: the first one's ``round-1.sums``, another's ``round-1.process-2.sums``."""
    return [*block.parent.glob(f"{block.stem}.*sums")]


def _pieces(block: Path) -> dict[tuple[int, int], set[int]]:
    """Checksums by first sample and end of the piece; pieces written more than once have several valid ones."""
    found: dict[tuple[int, int], set[int]] = {}
    for path in _sums_of(block):
        for line in regular(path, MAX_TEXT_BYTES).read_bytes().split(b"\n")[:-1]:
            try:
                start, stop, crc = line.split()
                found.setdefault((int(start), int(stop)), set()).add(int(crc, 16))
            except ValueError:
                continue  # a line that is damaged tells of nothing
    return found


def exchange(file: BlockFile, pieces: Sequence[Labels], world: World) -> None:
    """Wait until every process's pieces are on disk, readable by all others.

    Where all see one folder they are there already. Otherwise their maker sends them round, and
    one process of each machine that lacks them writes them.
    """
    world.barrier()
    if not world.shared:
        for owner in range(world.size):
            for places in replace(world, rank=owner).mine(pieces):
                start, n = int(places[0]), len(places)
                content = world.broadcast(file.read(start, n) if world.rank == owner else b"", owner)
                if world.is_node_writer and file.read(start, n) != content:
                    file.put(content, start, n)
        world.barrier()
    file.there[:] = 1


def read_block(path: Path, *, on_disk: bool) -> Tensor | DiskImages:
    """The images of a finished block: in memory, or memory-mapped."""
    return DiskImages(path) if on_disk else torch.from_numpy(np.array(_mapped(path)))


def check_block(path: Path, n: int, size: int) -> None:
    """Refuse a finished block (``n`` samples, ``size`` bytes of images) that does not match its checksums."""
    if not _sums_of(path):
        warnings.warn(f"{path} has no checksums: damage to it cannot be noticed", stacklevel=2)
    elif missing := n - int(samples_in(path, size // max(n, 1), n)[0].sum()):
        raise MeadaError(
            f"{path} is damaged: {missing:,} of its {n:,} samples do not match {path.stem}.sums; "
            "the run cannot be resumed, train it again in another --out"
        )


def _mapped(path: Path) -> NDArray[Any]:
    try:
        return map_npy(path)
    except MeadaError as error:
        if isinstance(error.__cause__, OSError):  # no memory: the file itself may be whole
            raise
        raise MeadaError(f"{path} must be a block of the pool, got a file that cannot be read ({error})") from None


def _reserve(path: Path, shape: tuple[int, ...], dtype: torch.dtype) -> bytes:
    """Allocate the full file, so that a full disk is noticed at once; return its header."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    header = {"descr": np.lib.format.dtype_to_descr(np.dtype(NUMPY[dtype])), "fortran_order": False, "shape": shape}
    try:
        with naming(path), open(draft, "wb") as file:
            np.lib.format.write_array_header_1_0(file, header)
            size = torch.Size(shape).numel() * dtype.itemsize
            os.posix_fallocate(file.fileno(), file.tell(), max(size, 1))
            file.truncate(file.tell() + size)
        os.replace(draft, path)
        with open(path, "rb") as file:
            return file.read(path.stat().st_size - size)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
