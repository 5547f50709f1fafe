"""Read the published file formats: idx (MNIST), MATLAB 5 (SVHN, SYN), LIBSVM (USPS) and lists of PNGs (MNIST-M).

The reader of MATLAB files is our own, because scipy's ends the whole process on some damaged files (a segmentation
fault, not an exception). The format: a header of 128 bytes, then elements, each a tag (type, size) and data; an
array is an element whose data are elements again: flags, dimensions, name, numbers.
"""

import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from meada.errors import MeadaError
from meada.machine.limits import MAX_UNPACKED_BYTES, MIB, inflated, read_text, regular, unpacked

UNSIGNED_BYTE = 0x08  # the third byte of idx's magic number; the fourth is the number of dimensions
LIBSVM_TEXT = 64 * MIB  # bytes of text: the 2,007 published images take 6


class Raw(NamedTuple):
    """Images as they are stored, (N, H, W) if grey, (N, 3, H, W) if coloured; a label each."""

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]


def read_idx_images(path: Path, side: int = 28) -> NDArray[np.uint8]:
    """Square grey images."""
    images = read_idx(path, 3)
    if images.shape[1:] != (side, side):
        shape = "x".join(str(n) for n in images.shape[1:])
        raise MeadaError(f"{path} must hold images of {side}x{side} pixels, got {shape}")
    return images


def with_idx_labels(images: NDArray[np.uint8], labels: Path) -> Raw:
    """The images together with the labels 0..9 that the file ``labels`` gives them."""
    digits = read_idx(labels, 1)
    if len(images) != len(digits):
        raise MeadaError(
            f"{labels} must have one label per image, got {len(digits):,} labels for {len(images):,} images"
        )
    if len(digits) and digits.max() > 9:
        raise MeadaError(f"{labels} must have labels from 0 to 9, got the label {digits.max()}")
    return Raw(images, digits.astype(np.int64))


def read_idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """Magic number, dimensions as big-endian 32-bit integers, then the bytes."""
    content = unpacked(path, "gzip")
    magic, start = bytes([0, 0, UNSIGNED_BYTE, dimensions]), 4 + 4 * dimensions
    if content[:4] != magic:
        raise MeadaError(f"{path} must begin with {magic.hex()}, got {content[:4].hex()}")
    if len(content) < start:
        raise MeadaError(f"{path} must have a header of {start} bytes, got {len(content)}")
    shape = struct.unpack(f">{dimensions}I", content[4:start])
    if len(content) - start != math.prod(shape):
        raise MeadaError(
            f"{path} must hold {math.prod(shape):,} bytes of data, as its header says, got {len(content) - start:,}"
        )
    # frombuffer gives a read-only view, which torch does not take
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape).copy()


def read_svhn(path: Path, side: int = 32) -> Raw:
    """A MATLAB file with X, 32x32x3xN, and y, in which 10 stands for the digit 0 (copies of SYN also write it as 0)."""
    content = read_matlab(path)
    x, y = content.get("X"), content.get("y")
    if x is None or y is None:
        raise MeadaError(
            f"{path} must have arrays of numbers named X and y, got none named {'X' if x is None else 'y'}"
        )
    if x.dtype != np.uint8 or x.ndim != 4 or x.shape[:3] != (side, side, 3):
        raise MeadaError(
            f"{path} must have X of uint8 and shape ({side}, {side}, 3, N), got X of {x.dtype} and shape {x.shape}"
        )
    if y.size != x.shape[3]:
        raise MeadaError(f"{path} must have one label per image, got {y.size:,} labels for {x.shape[3]:,} images")
    wrong = y[~np.isin(y, np.arange(11))]
    if len(wrong):
        raise MeadaError(f"{path} must have labels from 1 to 9, and 10 for a zero, got the label {wrong[0]}")
    return Raw(np.ascontiguousarray(x.transpose(3, 2, 0, 1)), y.reshape(-1).astype(np.int64) % 10)


HEADER = 128  # bytes; the last two are IM or MI and tell the order of bytes
MATRIX, COMPRESSED = 14, 15
COMPLEX = 0x800  # among the flags
# how numbers are stored; MATLAB stores doubles that are small integers as such
STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
# what they are: an array's class; cells, structures, text and sparse arrays are passed over
CLASS = dict(enumerate(("f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"), 6))
ORDERS = {b"IM": "<", b"MI": ">"}


def read_matlab(path: Path) -> dict[str, NDArray[Any]]:
    content = regular(path).read_bytes()
    order = ORDERS.get(content[HEADER - 2 : HEADER])
    if order is None or struct.unpack_from(f"{order}H", content, HEADER - 4)[0] >> 8 != 1:
        raise MeadaError(f"{path} ({len(content):,} bytes) is not a MATLAB 5 file")
    try:
        return dict(_arrays(memoryview(content)[HEADER:], order))
    except (ValueError, KeyError, IndexError, struct.error, zlib.error) as error:
        raise MeadaError(f"{path} ({len(content):,} bytes) is not a whole MATLAB 5 file ({error})") from None


def _arrays(content: memoryview, order: str, *, inside: bool = False) -> Iterator[tuple[str, NDArray[Any]]]:
    """Arrays of the file; compressed data must not be nested (``inside``) and its total size is bounded."""
    room = MAX_UNPACKED_BYTES
    for kind, data in _elements(content, order):
        if kind == COMPRESSED:
            if inside:
                raise ValueError("compressed data inside compressed data")
            whole = inflated(data, room)
            room -= len(whole)
            yield from _arrays(memoryview(whole), order, inside=True)
        elif kind == MATRIX and (array := _array(data, order)) is not None:
            yield array


def _array(data: memoryview, order: str) -> tuple[str, NDArray[Any]] | None:
    (_, flags), (_, dimensions), (_, name), *numbers = _elements(data, order)
    flag = struct.unpack_from(f"{order}I", flags)[0]
    if flag & COMPLEX or flag & 0xFF not in CLASS:
        return None
    stored, values = numbers[0]
    shape = [int(n) for n in np.frombuffer(dimensions, f"{order}i4")]
    numbers_of = np.frombuffer(values, f"{order}{STORED[stored]}")
    if not shape or math.prod(shape) != len(numbers_of) or min(shape) < 0:
        raise ValueError(f"{len(numbers_of):,} numbers for an array of shape {tuple(shape)}")
    if len(numbers_of) * np.dtype(CLASS[flag & 0xFF]).itemsize > MAX_UNPACKED_BYTES:
        raise ValueError(f"an array of more than {MAX_UNPACKED_BYTES:,} bytes")
    flat = numbers_of.astype(CLASS[flag & 0xFF])
    return bytes(name).decode(), flat.reshape(shape, order="F")


def _elements(content: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    at = 0
    while at < len(content):
        kind, size = struct.unpack_from(f"{order}2I", content, at)
        start = at + 8
        if kind >> 16:  # a small element: its size in the tag's upper half, its data in the lower
            kind, size, start = kind & 0xFFFF, kind >> 16, at + 4
        if start + size > len(content):
            raise ValueError(f"cut off: {start + size - len(content):,} bytes are missing")
        yield kind, content[start : start + size]
        # data are padded to 8 bytes, except what is compressed
        at = start + size + (0 if kind == COMPRESSED else -(start + size) % 8)


def read_libsvm(path: Path, side: int = 16) -> Raw:
    """Square grey images, a line each: ``label index:value ...``, values in [-1, 1]; label 1 means the digit 0."""
    try:
        lines = unpacked(path, "bz2", LIBSVM_TEXT).decode("ascii").splitlines()
    except UnicodeDecodeError:
        raise MeadaError(f"{path} does not hold lines of text") from None
    values = np.zeros((len(lines), side * side), np.float32)  # what a line leaves out is 0
    labels = np.zeros(len(lines), np.int64)
    for row, line in enumerate(lines):
        try:
            labels[row] = _fill(values[row], line)
        except ValueError as error:
            raise MeadaError(f"{path}, line {row + 1}: {error}") from None
    return Raw(to_bytes(values).reshape(-1, side, side), labels - 1)


def to_bytes(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Convert [-1, 1] to 0..255, truncated as in the published experiments.

    >>> to_bytes(np.array([-1.0, 0.0, 1.0], np.float32)).tolist()
    [0, 127, 255]
    """
    return ((values + 1) / 2 * 255).astype(np.uint8)


def _fill(row: NDArray[np.float32], line: str) -> int:
    """Write the line's values to ``row``; return its label."""
    label, *pairs = line.split() or [""]
    if label not in map(str, range(1, 11)):
        raise ValueError(f"the label must be one of 1..10, got '{label[:20]}'")
    for pair in pairs:
        index, colon, value = pair.partition(":")
        try:
            pixel, number = int(index), float(value)
        except ValueError:
            raise ValueError(f"'{pair[:20]}' is not index:value") from None
        if not (colon and 1 <= pixel <= len(row) and -1 <= number <= 1):
            raise ValueError(f"'{pair[:20]}' is not an index 1..{len(row)} and a value in [-1, 1]")
        row[pixel - 1] = number
    return int(label)


def read_pngs(entries: list[tuple[str, int]], folder: Path, side: int = 32) -> Raw:
    """Colour images in the order of the list, with its labels 0..9."""
    images = np.empty((len(entries), side, side, 3), np.uint8)
    for row, (name, _) in enumerate(entries):
        images[row] = read_image(folder / name, side)
    labels = np.array([label for _, label in entries], np.int64)
    return Raw(np.ascontiguousarray(images.transpose(0, 3, 1, 2)), labels)


def read_png_list(listing: Path) -> list[tuple[str, int]]:
    """Lines of ``name label``."""
    entries = []
    for number, line in enumerate(read_text(listing).splitlines(), start=1):
        words = line.split()
        if len(words) != 2 or words[0] != Path(words[0]).name or words[1] not in tuple("0123456789"):
            raise MeadaError(f"{listing}, line {number}: '{line[:40]}' is not a file's name and a digit")
        entries.append((words[0], int(words[1])))
    return entries


def read_image(path: Path, side: int) -> NDArray[np.uint8]:
    if not path.exists():
        raise MeadaError(f"{path} is missing, though the list names it")
    try:
        with Image.open(regular(path, None), formats=["PNG"]) as image:
            if image.size == (side, side):
                return np.asarray(image.convert("RGB"))
            width, height = image.size
    except (PermissionError, MeadaError):
        raise
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        raise MeadaError(f"{path} is not a whole PNG image") from None
    raise MeadaError(f"{path} must be {side}x{side} pixels, got {width}x{height}")
