"""Resize batches of 8-bit images with Pillow's BOX filter, equal to Pillow bit for bit.

A target pixel is the mean of the pixels whose centres lie in its cell, along rows and then along
columns, rounded to 8 bits after each. Pillow weighs in fixed point, 22 bits after the point.
"""

from functools import lru_cache

import numpy as np
from jaxtyping import Float, Float64, Int64

from meada.corruptions.arrays import Levels

Resized = Float[np.ndarray, "N C {height} {width}"]

ONE = 1 << 22


def shrink(x: Levels, height: int, width: int) -> Resized:
    """Whole levels to whole levels, of a size no larger."""
    if max(x.shape[2] / height, x.shape[3] / width) > 5:
        # from six pixels in a cell a mean can be a tie, which single precision might round wrongly
        x = x.astype(np.float64)
    rows, columns = weights(x.shape[2], height), weights(x.shape[3], width)
    across = np.floor(x @ columns.T.astype(x.dtype) + x.dtype.type(0.5))
    return np.floor(rows.astype(x.dtype) @ across + x.dtype.type(0.5))


def enlarge(x: Levels, height: int, width: int) -> Resized:
    """To a size no smaller, where a cell holds the centre of one pixel: its colour."""
    rows, columns = (nearest(old, new) for old, new in zip(x.shape[2:], (height, width), strict=True))
    flat = x.reshape(*x.shape[:2], -1)
    source = (rows[:, None] * x.shape[3] + columns).ravel()
    return flat.take(source, axis=2).reshape(*x.shape[:2], height, width)


@lru_cache(maxsize=32)
def weights(size: int, target: int) -> Float64[np.ndarray, "{target} {size}"]:
    """Equal weights of the pixels whose centres lie in the cell of each target pixel.

    >>> weights(4, 2).tolist()
    [[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]]
    """
    scale = size / target
    cell = max(scale, 1.0)
    pixel, centre = np.arange(size), (np.arange(target)[:, None] + 0.5) * scale
    # a centre on the border of two cells falls to either by rounding: the order of work is Pillow's
    position = (pixel - centre + 0.5) * (1.0 / cell)
    looked_at = (pixel >= np.floor(centre - 0.5 * cell + 0.5)) & (pixel < np.floor(centre + 0.5 * cell + 0.5))
    inside = (looked_at & (position > -0.5) & (position <= 0.5)).astype(np.float64)
    return np.floor(inside / inside.sum(1, keepdims=True) * ONE + 0.5) / ONE


def nearest(size: int, target: int) -> Int64[np.ndarray, " {target}"]:
    return weights(size, target).argmax(1)
