"""MNIST's idx format: magic number, dimensions as big-endian 32-bit integers, then the bytes."""

import math
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from meada.datasets.published.formats import Raw
from meada.errors import MeadaError
from meada.machine.limits import unpacked

UNSIGNED_BYTE = 0x08  # the third byte of the magic number; the fourth is the number of dimensions


def read_images(path: Path, side: int = 28) -> NDArray[np.uint8]:
    """Square grey images."""
    images = read_array(path, 3)
    if images.shape[1:] != (side, side):
        shape = "x".join(str(n) for n in images.shape[1:])
        raise MeadaError(f"{path} holds images of {shape} pixels: {side}x{side} is right")
    return images


def pair(images: NDArray[np.uint8], labels: Path) -> Raw:
    """The images together with the labels 0..9 that the file ``labels`` gives them."""
    digits = read_array(labels, 1)
    if len(images) != len(digits):
        raise MeadaError(f"{labels} has {len(digits):,} labels for {len(images):,} images")
    if len(digits) and digits.max() > 9:
        raise MeadaError(f"{labels} has the label {digits.max()}: digits run from 0 to 9")
    return Raw(images, digits.astype(np.int64))


def read_array(path: Path, dimensions: int) -> NDArray[np.uint8]:
    content = unpacked(path, "gzip")
    magic, start = bytes([0, 0, UNSIGNED_BYTE, dimensions]), 4 + 4 * dimensions
    if content[:4] != magic:
        raise MeadaError(f"{path} begins with {content[:4].hex()}: {magic.hex()} is right")
    if len(content) < start:
        raise MeadaError(f"{path} ends inside its header of {start} bytes")
    shape = struct.unpack(f">{dimensions}I", content[4:start])
    if len(content) - start != math.prod(shape):
        raise MeadaError(
            f"{path} holds {len(content) - start:,} bytes of data: its header promises {math.prod(shape):,}"
        )
    # frombuffer gives a read-only view, which torch does not take
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape).copy()
