"""Decode pictures once: a list of files as one 8-bit array on disk, mapped into memory.

The array is named after what it was made of (paths, sizes, times of change), so it is made again
when a file changes; it appears whole or not at all, and replaces the one before it.
"""

import errno
import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from itertools import count
from pathlib import Path
from uuid import uuid4

import numpy as np
import torch

from meada.datasets.pictures.decode import decode, large_ones_too
from meada.errors import MeadaError, some
from meada.files import naming, remove_drafts
from meada.machine.limits import map_npy
from meada.machine.terminal import Count
from meada.types import Images8

FORMAT = "meada-images/1: RGB, bilinear"  # another way of decoding gets another name


@dataclass(frozen=True)
class Listing:
    """An ordered list of pictures of a tree; ``name`` is that of its part of the tree."""

    name: str
    root: Path
    files: tuple[str, ...]  # below ``root``


def cache_root(folder: str | Path | None = None) -> Path:
    """``folder`` if it is given, else ``$MEADA_CACHE``, else ``~/.cache/meada/images``."""
    default = Path.home() / ".cache" / "meada" / "images"
    return Path(folder or os.environ.get("MEADA_CACHE") or default)


def load_images(
    listings: Sequence[Listing], side: int, *, folder: str | Path | None = None, tell: Count,
    faults: Sequence[str] = (), lenient: bool = False,
) -> list[Images8]:  # fmt: skip
    """The pictures of each listing, ``side`` x ``side``, decoded exactly or leniently.

    Every picture that cannot be used, of all listings, is named in one error, after ``faults`` that were found before.
    """
    home = cache_root(folder)
    paths = [home / cache_name(listing, side, lenient) for listing in listings]
    todo = {path for path in paths if not path.exists()}
    total, done = sum(len(x.files) for path, x in zip(paths, listings, strict=True) if path in todo), count(1)
    found, faults = list[Images8](), list(faults)
    for path, listing in zip(paths, listings, strict=True):
        bad = build(path, listing, side, lambda: tell(next(done), total), lenient=lenient) if path in todo else []
        faults += bad
        if not bad:  # mapped at once: another process may replace the file while the next one is made
            found.append(mapped(path))
    refuse(faults, listings[0].root)
    return found


def refuse(faults: Sequence[str], root: Path, shown: int = 5) -> None:
    """One sentence for all faults: the first few, and how many there are.

    >>> refuse(["a.jpg is CMYK", "b.jpg is CMYK"], Path("pacs"), shown=1)
    Traceback (most recent call last):
    meada.errors.MeadaError: pacs has 2 faults: a.jpg is CMYK; and 1 more
    """
    faults = list(dict.fromkeys(faults))  # a picture may stand in two listings
    if faults:
        kinds = "1 fault" if len(faults) == 1 else f"{len(faults):,} faults"
        raise MeadaError(f"{root} has {kinds}: {some(faults, shown, '; ')}")


def cache_name(listing: Listing, side: int, lenient: bool = False) -> str:
    """``PLACE-CONTENT.npy``: a hash of tree and part, then a hash of the files' current state."""
    place = digest([str(listing.root.resolve()), listing.name, str(side)])
    kind = f"{FORMAT}, of any kind" if lenient else FORMAT
    return f"{place}-{digest([kind, *fingerprints(listing)])}.npy"


def build(path: Path, listing: Listing, side: int, done: Callable[[], None], *, lenient: bool = False) -> list[str]:
    """Decode all pictures into ``path``; return the errors found, in which case no file is kept.

    In threads: Pillow lets go of the interpreter while it decodes and resizes.
    """
    faults = []
    with _draft(path) as (file, keep), large_ones_too(), ThreadPoolExecutor(os.cpu_count()) as pool:
        with naming(path):
            start = _header(file, (len(listing.files), 3, side, side))

        def put(row: int) -> str:
            try:
                pixels = decode(listing.root / listing.files[row], side, lenient=lenient)
            except MeadaError as error:
                return f"{listing.files[row]} {error}"
            with naming(path):  # written, not mapped: a full disk is an error and not a dead process
                _write(file, pixels.data.cast("B"), start + row * pixels.nbytes)
            return ""

        for fault in pool.map(put, range(len(listing.files))):
            faults += [fault] if fault else []
            done()
        if not faults:
            keep()
    return faults


def mapped(path: Path) -> Images8:
    """The file as a memory-mapped array."""
    try:
        # "c": private to this process, since torch warns of arrays that it may not write to
        return torch.from_numpy(map_npy(path, "c"))
    except (OSError, MeadaError) as error:
        raise MeadaError(f"{path} cannot be read ({error}): delete it to make it again") from None


@contextmanager
def writable(path: Path) -> Iterator[None]:
    """Say what to do if the cache cannot be written, as in a read-only home."""
    try:
        with naming(path):
            yield
    except OSError as error:
        if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise
        raise MeadaError(
            f"{path.parent} must be a writable folder, got: {error.strerror}; set MEADA_CACHE to another folder"
        ) from None


@contextmanager
def _draft(path: Path) -> Iterator[tuple[int, Callable[[], None]]]:
    """A temporary file next to ``path``: renamed to it on success, else removed."""
    with writable(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_drafts(path.parent)
        name = path.parent / f".{uuid4().hex}.draft"
        file = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        fcntl.flock(file, fcntl.LOCK_EX)  # until this process ends: how others know that it lives

    def keep() -> None:
        with naming(path):
            os.fsync(file)
            os.replace(name, path)
        place = path.name.partition("-")[0]
        for old in path.parent.glob(f"{place}-*.npy"):
            if old != path:
                old.unlink(missing_ok=True)

    try:
        yield file, keep
    finally:
        os.close(file)
        name.unlink(missing_ok=True)


def _header(file: int, shape: tuple[int, ...]) -> int:
    """Write numpy's header; return the offset of the data."""
    buffer = BytesIO()
    about = {"descr": "|u1", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, about)
    _write(file, buffer.getbuffer(), 0)
    return len(buffer.getvalue())


def _write(file: int, content: memoryview, place: int) -> None:
    """Write without a memory map, since a full disk would kill the process; short writes continue."""
    while content:
        written = os.pwrite(file, content, place)
        content, place = content[written:], place + written


def fingerprints(listing: Listing) -> Iterator[str]:
    for name in listing.files:
        about = (listing.root / name).stat()
        yield f"{name} {about.st_size} {about.st_mtime_ns}"


def digest(lines: Sequence[str]) -> str:
    return sha256("\n".join(lines).encode(errors="surrogateescape")).hexdigest()[:20]
