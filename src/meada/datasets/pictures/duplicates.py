"""Find copies of a picture by its pixels, and near-copies by a coarse hash of its brightness."""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

SHAPE = (9, 8)  # pixels that the coarse hash compares, each with its right neighbour: 8 x 8 bits
MARGIN = 2  # levels that the right neighbour must be brighter by: noise of a flat area is no edge
BITS = 64
NEAR = 2  # bits that may differ: a JPEG saved again at 3/4 of its size differs by 0 to 3
PLAIN = 6  # hashes with fewer bits set show nothing to tell pictures apart by
BLOCK = 256  # rows compared at once: 256 x 50,000 distances take 50 MB


class Look(NamedTuple):
    """What is remembered of a picture that can be decoded."""

    width: int
    height: int
    content: str  # hash of the decoded pixels: the same for copies, whatever their name or format
    coarse: str  # difference hash in hexadecimal digits: nearly the same for pictures that look alike


def look(image: Image.Image, size: tuple[int, int]) -> Look:
    """``image`` is upright RGB, ``size`` the width and height of the file."""
    content = sha256(f"{image.size}".encode() + image.tobytes()).hexdigest()[:32]
    return Look(*size, content, difference_hash(image))


def difference_hash(image: Image.Image) -> str:
    """Where brightness rises from left to right, on a grid of 8 x 8, as 16 hexadecimal digits.

    >>> difference_hash(Image.linear_gradient("L").rotate(90))
    'ffffffffffffffff'
    """
    grey = np.asarray(image.convert("L").resize(SHAPE, Image.Resampling.BILINEAR), np.int16)
    return np.packbits(grey[:, 1:] > grey[:, :-1] + MARGIN).tobytes().hex()


def near(these: Sequence[str], those: Sequence[str]) -> list[tuple[int, int]]:
    """(i, j) for each i whose nearest hash among ``those`` is j and differs in at most NEAR bits.

    >>> near(["ffff0000ffff0000", "0f0f0f0f0f0f0f0f"], ["0000000000000000", "ffff0000ffff0001"])
    [(0, 1)]
    """
    a, b = _signs(these), _signs(those)
    if not len(a) or not len(b):
        return []
    found = list[tuple[int, int]]()
    for start in range(0, len(a), BLOCK):
        agree = a[start : start + BLOCK] @ b.T  # bits that agree minus bits that differ
        best = agree.argmax(1)
        close = agree[np.arange(len(best)), best] >= BITS - 2 * NEAR
        found += [(start + int(i), int(best[i])) for i in np.flatnonzero(close)]
    return found


def _signs(hashes: Sequence[str]) -> NDArray[np.float32]:
    """+1 and -1 for bits set and not; 0 throughout for hashes that are too plain to compare."""
    packed = np.frombuffer(bytes.fromhex("".join(hashes)), np.uint8).reshape(-1, BITS // 8)
    bits = np.unpackbits(packed, axis=1)
    return (2 * bits.astype(np.float32) - 1) * (bits.sum(1, keepdims=True) >= PLAIN)


def copies(looks: Mapping[str, Look]) -> list[list[str]]:
    """Files with the same pixels, where there are at least two."""
    return [files for files in together(looks, (one.content for one in looks.values())) if len(files) > 1]


def together(files: Iterable[str], keys: Iterable[str]) -> list[list[str]]:
    """Files by their key, in order of their first file."""
    found: dict[str, list[str]] = {}
    for file, key in zip(files, keys, strict=True):
        found.setdefault(key, []).append(file)
    return list(found.values())
