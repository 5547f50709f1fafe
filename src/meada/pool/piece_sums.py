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
        self.block, self.path = block, own_file(block, ".sums", rank)

    @property
    def known(self) -> bool:
        """A block of an earlier version has no checksums."""
        return bool(files_of_all(self.block, ".sums"))

    def begin(self, header: bytes) -> None:
        """A new block: its ``.npy`` header is the first line."""
        for path in files_of_all(self.block, ".sums"):
            path.unlink()
        self.add(0, 0, header)

    def add(self, start: int, stop: int, content: bytes) -> None:
        with naming(self.path), open(self.path, "a+b") as file:
            if file.tell() and os.pread(file.fileno(), 1, file.tell() - 1) != b"\n":
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
        head = self.block.stat().st_size - n * row
        with open(self.block, "rb") as file:
            if head < 0 or zlib.crc32(file.read(head)) not in pieces.pop((0, 0), set()):
                return [(0, n)]
            for (start, stop), sums in sorted(pieces.items()):
                if 0 <= start < stop <= n:
                    file.seek(head + start * row)
                    good = zlib.crc32(file.read((stop - start) * row)) in sums
                    covered[start:stop] = bytes([good]) * (stop - start)
        return merged([(place, place + 1) for place in range(n) if not covered[place]])

    def _pieces(self) -> dict[Span, set[int]]:
        """A piece may have been written more than once: any of its checksums will do."""
        found: dict[Span, set[int]] = {}
        for path in files_of_all(self.block, ".sums"):
            for line in regular(path, NOTES).read_bytes().split(b"\n")[:-1]:
                try:
                    start, stop, crc = line.split()
                    found.setdefault((int(start), int(stop)), set()).add(int(crc, 16))
                except ValueError:
                    continue  # a line that is damaged tells of nothing
        return found


def own_file(block: Path, ending: str, rank: int) -> Path:
    """What a process keeps next to a block: the first one ``round-1.sums``, another ``round-1.process-2.sums``."""
    return block.with_suffix(f".process-{rank}{ending}" if rank else ending)


def files_of_all(block: Path, ending: str) -> list[Path]:
    """Such files of every process that there was."""
    first = own_file(block, ending, 0)
    return [*([first] if first.exists() else []), *block.parent.glob(f"{block.stem}.process-*{ending}")]


def merged(spans: list[Span]) -> list[Span]:
    """Spans that touch or overlap become one.

    >>> merged([(4, 6), (0, 2), (2, 3)])
    [(0, 3), (4, 6)]
    """
    out: list[Span] = []
    for start, stop in sorted(spans):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(stop, out[-1][1]))
        else:
            out.append((start, stop))
    return [span for span in out if span[0] < span[1]]


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
    content = read_bytes(path)
    try:
        return np.load(BytesIO(content), allow_pickle=False)
    except (OSError, ValueError, EOFError, MemoryError) as error:
        raise MeadaError(f"{path} is damaged: it must be a .npy file, got {error}") from None
