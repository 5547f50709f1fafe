"""MATLAB 5 files: the arrays of real numbers in them, by name.

A reader of our own, because scipy's ends the whole process on some damaged files (a segmentation
fault, not an exception). The format: a header of 128 bytes, then elements, each a tag (type, size)
and data; an array is an element whose data are elements again: flags, dimensions, name, numbers.
"""

import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meada.errors import MeadaError
from meada.machine.limits import UNPACKED, inflated, regular

HEADER = 128  # bytes; the last two are IM or MI and tell the order of bytes
MATRIX, COMPRESSED = 14, 15
COMPLEX = 0x800  # among the flags
# how numbers are stored; MATLAB stores doubles that are small integers as such
STORED = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}
# what they are: an array's class; cells, structures, text and sparse arrays are passed over
CLASS = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4"} | {
    14: "i8",
    15: "u8",
}
ORDERS = {b"IM": "<", b"MI": ">"}


def read(path: Path) -> dict[str, NDArray[Any]]:
    content = regular(path).read_bytes()
    order = ORDERS.get(content[HEADER - 2 : HEADER])
    if order is None or struct.unpack_from(f"{order}H", content, HEADER - 4)[0] >> 8 != 1:
        raise MeadaError(f"{path} ({len(content):,} bytes) is not a MATLAB 5 file")
    try:
        return dict(_arrays(memoryview(content)[HEADER:], order))
    except (ValueError, KeyError, IndexError, struct.error, zlib.error) as error:
        raise MeadaError(f"{path} ({len(content):,} bytes) is not a whole MATLAB 5 file ({error})") from None


def _arrays(content: memoryview, order: str, *, inside: bool = False) -> Iterator[tuple[str, NDArray[Any]]]:
    """``inside`` compressed data there is no other; all of it together stays within a bound."""
    room = UNPACKED
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
    if len(numbers_of) * np.dtype(CLASS[flag & 0xFF]).itemsize > UNPACKED:
        raise ValueError(f"an array of more than {UNPACKED:,} bytes")
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
            raise ValueError(f"cut off: {start + size - len(content):,} bytes are wanting")
        yield kind, content[start : start + size]
        # data are padded to 8 bytes, except what is compressed
        at = start + size + (0 if kind == COMPRESSED else -(start + size) % 8)
