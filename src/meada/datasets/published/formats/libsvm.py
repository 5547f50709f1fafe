"""USPS in LIBSVM's format, bz2: a line an image, ``label index:value ...``, values in [-1, 1]."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from meada.datasets.published.formats import Raw
from meada.errors import MeadaError
from meada.machine.limits import MIB, unpacked

MOST = 64 * MIB  # bytes of text: the 2,007 published images take 6


def read(path: Path, side: int = 16) -> Raw:
    """Square grey images; the labels 1..10 of the file mean the digits 0..9."""
    lines = bunzip(path).splitlines()
    values = np.zeros((len(lines), side * side), np.float32)  # what a line leaves out is 0
    labels = np.zeros(len(lines), np.int64)
    for row, line in enumerate(lines):
        try:
            labels[row] = fill(values[row], line)
        except ValueError as error:
            raise MeadaError(f"{path}, line {row + 1}: {error}") from None
    return Raw(to_bytes(values).reshape(-1, side, side), labels - 1)


def to_bytes(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    """[-1, 1] to 0..255, cut off rather than rounded, as the published experiments have it.

    >>> to_bytes(np.array([-1.0, 0.0, 1.0], np.float32)).tolist()
    [0, 127, 255]
    """
    return ((values + 1) / 2 * 255).astype(np.uint8)


def fill(row: NDArray[np.float32], line: str) -> int:
    """Put the line's values into ``row``; its label is the answer."""
    label, *pairs = line.split() or [""]
    if label not in LABELS:
        raise ValueError(f"the label '{label[:20]}' is not one of 1..10")
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


LABELS = {str(label) for label in range(1, 11)}


def bunzip(path: Path) -> str:
    try:
        return unpacked(path, "bz2", MOST).decode("ascii")
    except UnicodeDecodeError:
        raise MeadaError(f"{path} does not hold lines of text") from None
