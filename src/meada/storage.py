"""Blocks of images on disk: reserved whole, written piece by piece, read without staying."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from meada.errors import MeadaError
from meada.files import naming, write_json
from meada.types import Labels

NUMPY = {torch.uint8: np.uint8, torch.float32: np.float32, torch.float64: np.float64}


@dataclass(frozen=True)
class DiskImages:
    """A finished ``.npy`` file, indexed like a tensor.

    Each read maps the file anew and lets go of it: pages that were read do not add up in the
    process, so its memory stays the same however large the pool is.
    """

    path: Path
    shape: tuple[int, ...]
    dtype: torch.dtype

    @classmethod
    def open(cls, path: Path) -> "DiskImages":
        array = _mapped(path)
        dtype = next(t for t, n in NUMPY.items() if array.dtype == n)
        return cls(path, tuple(array.shape), dtype)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def nbytes(self) -> int:
        return torch.Size(self.shape).numel() * self.dtype.itemsize

    def __getitem__(self, index: Labels | slice) -> Tensor:
        where = index.numpy() if isinstance(index, Tensor) else index
        return torch.from_numpy(np.array(_mapped(self.path)[where]))


class BlockFile:
    """One ``.npy`` file of a known shape and a note beside it of how much of it is written.

    A process that dies in the middle leaves both behind; the next one opens them and goes on.
    """

    def __init__(self, path: Path, shape: tuple[int, ...], dtype: torch.dtype, origin: str) -> None:
        self.path, self.note = path, path.with_suffix(".json")
        self._about: dict[str, Any] = {"shape": list(shape), "dtype": str(dtype), "origin": origin}
        self._row = torch.Size(shape[1:]).numel() * dtype.itemsize
        self.done = self._left_behind()
        if not self.done:
            self.note.unlink(missing_ok=True)
            _reserve(path, shape, dtype)
        self._start = path.stat().st_size - shape[0] * self._row

    def write(self, images: Tensor) -> None:
        """Append the next samples, then say so: the note never runs ahead of the images."""
        with naming(self.path), open(self.path, "r+b") as file:
            file.seek(self._start + self.done * self._row)
            file.write(images.contiguous().cpu().numpy().tobytes())
            file.flush()
            os.fdatasync(file.fileno())
        self.done += len(images)
        write_json(self.note, {**self._about, "written": self.done})

    def _left_behind(self) -> int:
        if not (self.note.exists() and self.path.exists()):
            return 0
        note = json.loads(self.note.read_text())
        written = int(note.pop("written"))
        return written if note == self._about else 0


def read_block(path: Path, *, on_disk: bool) -> "Tensor | DiskImages":
    """The images of a finished block: in memory, or left where they are."""
    if on_disk:
        return DiskImages.open(path)
    return torch.from_numpy(np.array(_mapped(path)))


def _mapped(path: Path) -> NDArray[Any]:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise MeadaError(f"{path}: a block of the pool cannot be read ({error})") from error


def _reserve(path: Path, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """A file of full size whose bytes are claimed now, so that a full disk is found at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    header = {
        "descr": np.lib.format.dtype_to_descr(np.dtype(NUMPY[dtype])),
        "fortran_order": False,
        "shape": shape,
    }
    try:
        with naming(path), open(draft, "wb") as file:
            np.lib.format.write_array_header_1_0(file, header)
            size = torch.Size(shape).numel() * dtype.itemsize
            os.posix_fallocate(file.fileno(), file.tell(), max(size, 1))
            file.truncate(file.tell() + size)
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
