"""Read files of unknown origin within bounds: regular files, limited sizes, ``.npy`` headers checked before use.

The limits are listed in ``docs/limits.md``.
"""

import bz2
import errno
import gzip
import math
import zlib
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from meada import files
from meada.errors import MeadaError, one_line

MIB = 1 << 20
MAX_DATA_BYTES = 2048 * MIB  # bytes of a data file that is read whole
MAX_LIST_BYTES = 256 * MIB  # bytes of a list of files
MAX_UNPACKED_BYTES = 512 * MIB  # bytes that a compressed file may become
HEADER = 10_000  # bytes of a .npy header: numpy's own limit


def regular(path: Path, most: int | None = MAX_DATA_BYTES) -> Path:
    """:func:`meada.files.regular` with the bound of data files."""
    return files.regular(path, most)


def read_text(path: Path) -> str:
    """A text file of a bounded size; a byte-order mark is dropped."""
    try:
        return regular(path, MAX_LIST_BYTES).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise MeadaError(f"{path} must be a text file in UTF-8, got {error}") from None


def unpacked(path: Path, kind: Literal["gzip", "bz2"], most: int = MAX_UNPACKED_BYTES) -> bytes:
    """The content of a compressed file; an error once it exceeds ``most`` bytes."""
    size = regular(path).stat().st_size
    try:
        with gzip.open(path) if kind == "gzip" else bz2.open(path) as file:
            content: bytes = file.read(most + 1)
    except EOFError:
        raise MeadaError(f"{path} is cut off after {size:,} bytes") from None
    except PermissionError:
        raise
    except (OSError, zlib.error, ValueError) as error:
        raise MeadaError(f"{path} ({size:,} bytes) is not a whole {kind} file ({error})") from None
    return within(content, most, str(path))


def inflated(data: memoryview, most: int = MAX_UNPACKED_BYTES) -> bytes:
    """zlib data; more than ``most`` bytes, or less than the whole, is an error."""
    engine = zlib.decompressobj()
    content = within(engine.decompress(data, most + 1), most, "compressed data")
    if not engine.eof:
        raise zlib.error("incomplete or truncated stream")
    return content


def within(content: bytes, most: int, name: str) -> bytes:
    if len(content) > most:
        raise MeadaError(f"{name} must hold at most {most:,} bytes when it is decompressed, got more")
    return content


def map_npy(path: Path, mode: Literal["r", "c", "r+"] = "r") -> NDArray[Any]:
    """The array of a ``.npy`` file, mapped into memory; never a pickle, never more than the file holds."""
    size = regular(path, None).stat().st_size
    with path.open("rb") as file:
        shape, by_column, dtype = _header(file, path)
        start = file.tell()
    wanted = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or wanted != size - start:
        raise MeadaError(f"{path} must hold an array of shape {shape} in {wanted:,} bytes, got {size - start:,} bytes")
    order: Literal["F", "C"] = "F" if by_column else "C"
    if wanted == 0:
        return np.empty(shape, dtype, order)  # nothing to map
    try:
        return np.memmap(path, dtype, mode, start, shape, order)
    except OSError as error:
        if error.errno == errno.ENOMEM:
            raise MeadaError(f"not enough memory to map {path}: it needs {size:,} bytes of address space") from error
        raise


@cache
def picture_formats() -> tuple[str, ...]:
    """Formats that Pillow decodes itself. PostScript is excluded: it is a program, run by Ghostscript."""
    from PIL import Image

    Image.init()
    return tuple(name for name in Image.ID if name != "EPS")


def _header(file: Any, path: Path) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    try:
        version = np.lib.format.read_magic(file)
        width = 2 if version == (1, 0) else 4
        length = int.from_bytes(file.read(width), "little")
        if length > HEADER:
            raise ValueError(f"a header of {length:,} bytes")
        file.seek(-width, 1)
        read = np.lib.format.read_array_header_1_0 if width == 2 else np.lib.format.read_array_header_2_0
        shape, by_column, dtype = read(file)
    except (ValueError, EOFError, SyntaxError, TypeError, MemoryError, RecursionError, OverflowError) as error:
        raise MeadaError(f"{path} must be a .npy file of numbers, got {one_line(error)}") from None
    if dtype.hasobject or dtype.fields or dtype.subdtype:
        raise MeadaError(f"{path} must be a .npy file of numbers, got {dtype}")
    return shape, by_column, dtype
