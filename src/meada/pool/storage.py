"""Image blocks on disk: pre-allocated, written piece by piece, memory-mapped so that resident memory stays constant."""

import json
import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from meada.errors import MeadaError
from meada.files import NOTES, crc32, naming, regular, write_json
from meada.machine.distributed import World
from meada.machine.limits import map_npy
from meada.pool.piece_sums import PieceSums, Span, files_of_all, merged, own_file
from meada.types import Labels

TOUCHED = 64 << 10  # bytes that the kernel maps around a page that is asked for
RESIDENT = 512 << 20  # bytes of a file on disk that may be in the process at once
NUMPY = {torch.uint8: np.uint8, torch.float32: np.float32, torch.float64: np.float64}


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
    """One ``.npy`` file of a known shape, and next to it each process's note of what it has written.

    A process that dies in the middle leaves all of it behind; the next ones open it and go on, however many they are.
    """

    def __init__(
        self, path: Path, shape: tuple[int, ...], dtype: torch.dtype, origin: str, world: World | None = None
    ) -> None:
        world = world or World()
        self.path, self.note = path, own_file(path, ".json", world.rank)
        self._about: dict[str, Any] = {"shape": list(shape), "dtype": str(dtype), "origin": origin}
        self._row = torch.Size(shape[1:]).numel() * dtype.itemsize
        self._sums = PieceSums(path, world.rank)
        world.barrier()  # nobody is still reading notes that the next lines replace
        spans: list[Span] = []
        if world.is_node_writer:
            spans = self._undamaged(self._earlier_spans(), shape[0])
            for note in files_of_all(path, ".json"):
                note.unlink()
            if spans:
                self._write_note(spans)
            else:
                self._sums.begin(_reserve(path, shape, dtype))
        world.barrier()
        self.there = torch.zeros(shape[0], dtype=torch.uint8)  # 1: written, here or before
        for start, stop in spans if world.is_node_writer else self._earlier_spans():
            self.there[start:stop] = 1
        world.all_reduce_min(self.there)  # on several machines: what each of them has
        world.barrier()
        self._spans = spans
        self._start = path.stat().st_size - shape[0] * self._row

    def write(self, images: Tensor, at: int) -> None:
        """Put samples in their place, then say so: the note never runs ahead of the images."""
        self.put(images.contiguous().cpu().numpy().tobytes(), at, len(images))

    def put(self, content: bytes, at: int, count: int) -> None:
        with naming(self.path), open(self.path, "r+b") as file:
            file.seek(self._start + at * self._row)
            file.write(content)
            file.flush()
            os.fdatasync(file.fileno())
        self._sums.add(at, at + count, content)
        self.there[at : at + count] = 1
        self._spans = merged([*self._spans, (at, at + count)])
        self._write_note(self._spans)

    def read(self, at: int, count: int) -> bytes:
        with naming(self.path), open(self.path, "rb") as file:
            file.seek(self._start + at * self._row)
            return file.read(count * self._row)

    def holds(self, at: int, content: bytes) -> bool:
        """Whether the samples are there already: made by this process or another next to it."""
        return self.read(at, len(content) // self._row) == content

    def _write_note(self, spans: list[Span]) -> None:
        note = {**self._about, "written": sum(stop - start for start, stop in spans), "spans": spans}
        write_json(self.note, {**note, "crc32": crc32(note)}, checked=False)

    def _undamaged(self, spans: list[Span], n: int) -> list[Span]:
        """Those of the samples left behind that are what was written; the others are made again."""
        if spans and not self._sums.known:
            self._sums.adopt(spans, self._row, n)
        damaged = self._sums.damaged(self._row, n) if spans else []
        whole = _without(spans, damaged)
        if whole != spans:
            warnings.warn(f"{self.path} is damaged: the samples that do not match are made again", stacklevel=3)
        return whole

    def _earlier_spans(self) -> list[Span]:
        spans: list[Span] = []
        whole = self.path.exists() and not self.path.is_symlink()  # a link is replaced, not written through
        for path in files_of_all(self.path, ".json") if whole else []:
            note = _read_note(path)
            written = int(note.pop("written", 0))
            listed = note.pop("spans", [(0, written)])
            spans += [(start, stop) for start, stop in listed] if note == self._about else []
        return merged(spans)


def _read_note(path: Path) -> dict[str, Any]:
    """A damaged note is left out: its samples are made again."""
    try:
        note = json.loads(regular(path, NOTES).read_text(encoding="utf-8"))
        crc = note.pop("crc32", None)
        if crc not in (None, crc32({**note, "spans": [tuple(span) for span in note.get("spans", [])]})):
            raise ValueError("its checksum does not match")
        return dict(note)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        warnings.warn(f"{path} is damaged ({error}): its samples are made again", stacklevel=2)
        return {}


def _without(spans: list[Span], damaged: list[Span]) -> list[Span]:
    """
    >>> _without([(0, 10)], [(2, 4)])
    [(0, 2), (4, 10)]
    """
    for low, high in damaged:
        spans = [piece for a, b in spans for piece in ((a, min(b, low)), (max(a, high), b))]
    return merged([span for span in spans if span[0] < span[1]])


def exchange(file: BlockFile, pieces: Sequence[Labels], world: World) -> None:
    """Every process's pieces are on disk after this, where each of the others reads them.

    Where all see one folder they are there already. Otherwise their maker sends them round, and
    one process of each machine that lacks them writes them.
    """
    world.barrier()
    if not world.shared:
        for owner in range(world.size):
            for places in replace(world, rank=owner).mine(pieces):
                start, n = int(places[0]), len(places)
                content = world.broadcast(file.read(start, n) if world.rank == owner else b"", owner)
                if world.is_node_writer and not file.holds(start, content):
                    file.put(content, start, n)
        world.barrier()
    file.there[:] = 1


def read_block(path: Path, *, on_disk: bool) -> Tensor | DiskImages:
    """The images of a finished block: in memory, or left where they are."""
    return DiskImages(path) if on_disk else torch.from_numpy(np.array(_mapped(path)))


def _mapped(path: Path) -> NDArray[Any]:
    try:
        return map_npy(path)
    except MeadaError as error:
        if isinstance(error.__cause__, OSError):  # no memory: the file itself may be whole
            raise
        raise MeadaError(f"{path} must be a block of the pool, got a file that cannot be read ({error})") from None


def _reserve(path: Path, shape: tuple[int, ...], dtype: torch.dtype) -> bytes:
    """A file of full size whose bytes are claimed now, so that a full disk is found at once; its header."""
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
