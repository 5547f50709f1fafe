"""SVHN's cropped digits, and SYN likewise: a MATLAB file with X, 32x32x3xN, and y, 1..10."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meada.datasets.published.formats import Raw, matlab5
from meada.errors import MeadaError


def read(path: Path, side: int = 32) -> Raw:
    """Images and labels, in which 10 stands for the digit 0 (copies of SYN also write it as 0)."""
    content = matlab5.read(path)
    x, y = content.get("X"), content.get("y")
    if x is None or y is None:
        raise MeadaError(f"{path} has no array of numbers named {'X' if x is None else 'y'}")
    if x.dtype != np.uint8 or x.ndim != 4 or x.shape[:3] != (side, side, 3):
        raise MeadaError(f"{path} has X of {x.dtype} and shape {x.shape}: uint8 and ({side}, {side}, 3, N) is right")
    if y.size != x.shape[3]:
        raise MeadaError(f"{path} has {y.size:,} labels for {x.shape[3]:,} images")
    return Raw(np.ascontiguousarray(x.transpose(3, 2, 0, 1)), digits(path, y.reshape(-1)))


def digits(path: Path, y: NDArray[Any]) -> NDArray[np.int64]:
    wrong = y[~np.isin(y, np.arange(11))]
    if len(wrong):
        raise MeadaError(f"{path} has the label {wrong[0]}: 1 to 9, and 10 for a zero, are right")
    return y.astype(np.int64) % 10
