"""Checksums of the pieces of a block on disk: one line for each, added when the piece is written."""

import os
import warnings
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meada.errors import MeadaError
from meada.files import NOTES, naming, read_bytes, regular

Span = tuple[int, int]  # samples from the first up to and without the second


class PieceSums:
    """``round-1.sums`` next to ``round-1.npy``; each process of a run adds to a file of its own."""

    def __init__(self, block: Path, rank: int = 0) -> None:
        self.block = block
        self.path = block.with_suffix(f".process-{rank}.sums" if rank else ".sums")

    @property
    def known(self) -> bool:
        """A block of an earlier version has no checksums."""
        return bool(self._files())

    def begin(self, header: bytes) -> None:
        """A new block: its ``.npy`` header is the first line."""
        for path in self._files():
            path.unlink()
        self.add(0, 0, header)

    def add(self, start: int, stop: int, content: bytes) -> None:
        with naming(self.path), open(self.path, "a+b") as file:
            if file.tell() and not self._ends_in_a_line(file.fileno()):
                file.write(b"\n")  # a process was killed while it wrote
            file.write(f"{start} {stop} {zlib.crc32(content):08x}\n".encode())

    def adopt(self, spans: list[Span], row: int, n: int) -> None:
        """Take pieces of an earlier version, which kept no checksums, as they are now."""
        with open(self.block, "rb") as file:
            head = self.block.stat().st_size - n * row
            self.begin(file.read(head))
            for start, stop in spans:
                file.seek(head + start * row)
                self.add(start, stop, file.read((stop - start) * row))

    def damaged(self, row: int, n: int) -> list[Span]:
        """Samples whose bytes match no checksum, or that have none; each piece is read once."""
        pieces, covered = self._pieces(), bytearray(n)
        bad: list[Span] = []
        head = self.block.stat().st_size - n * row
        with open(self.block, "rb") as file:
            if head < 0 or zlib.crc32(file.read(head)) not in pieces.pop((0, 0), set()):
                return [(0, n)]
            for (start, stop), sums in sorted(pieces.items()):
                if 0 <= start < stop <= n:
                    file.seek(head + start * row)
                    good = zlib.crc32(file.read((stop - start) * row)) in sums
                    covered[start:stop] = bytes([good]) * (stop - start)
        for place in range(n):
            if not covered[place]:
                bad = (
                    [*bad[:-1], (bad[-1][0], place + 1)] if bad and bad[-1][1] == place else [*bad, (place, place + 1)]
                )
        return bad

    def _pieces(self) -> dict[Span, set[int]]:
        """A piece may have been written more than once: any of its checksums will do."""
        found: dict[Span, set[int]] = {}
        for path in self._files():
            for line in regular(path, NOTES).read_bytes().split(b"\n")[:-1]:
                try:
                    start, stop, crc = line.split()
                    found.setdefault((int(start), int(stop)), set()).add(int(crc, 16))
                except ValueError:
                    continue  # a line that is damaged tells of nothing
        return found

    def _files(self) -> list[Path]:
        own = self.block.with_suffix(".sums")
        return [*([own] if own.exists() else []), *self.block.parent.glob(f"{self.block.stem}.process-*.sums")]

    @staticmethod
    def _ends_in_a_line(handle: int) -> bool:
        return os.pread(handle, 1, os.fstat(handle).st_size - 1) == b"\n"


def check_block(path: Path, n: int, size: int) -> None:
    """Refuse a finished block of ``n`` samples and ``size`` bytes of images that is not what was written."""
    sums = PieceSums(path)
    if not sums.known:
        warnings.warn(f"{path} has no checksums: damage to it cannot be noticed", stacklevel=2)
    elif bad := sums.damaged(size // max(n, 1), n):
        start, stop = bad[0]
        raise MeadaError(
            f"{path} is damaged: samples {start} to {stop - 1} must match {sums.path.name}, got other bytes; "
            "the run cannot be resumed, train it again in another --out"
        )


def load_array(path: Path) -> NDArray[Any]:
    """A small ``.npy`` file, whole and checked."""
    try:
        return np.load(BytesIO(read_bytes(path)), allow_pickle=False)
    except MeadaError:
        raise
    except (OSError, ValueError, EOFError, MemoryError) as error:
        raise MeadaError(f"{path} is damaged: it must be a .npy file, got {error}") from None
