"""Motion blur as in ImageMagick: a one-sided Gaussian along a line of whole pixels."""

from math import ceil

import numpy as np
from jaxtyping import Float64, Int64
from numpy.lib.stride_tricks import sliding_window_view

from meada.corruptions.arrays import Levels


def weights(radius: float, sigma: float) -> Float64[np.ndarray, " taps"]:
    """Weights of the pixel itself and of those ahead, without the ones too small for 16 bits.

    >>> weights(6.0, 1.0).round(3)
    array([0.57 , 0.346, 0.077, 0.006, 0.   , 0.   ])
    """
    taps = np.arange(2 * ceil(radius) + 1)
    k = np.exp(-(taps**2) / (2 * sigma**2))
    k /= k.sum()
    return k[k > 1e-6]


def offsets(angle: Float64[np.ndarray, " N"], taps: int) -> Int64[np.ndarray, "2 taps N"]:
    """How many (rows, columns) ahead each tap looks; degrees, clockwise from the right."""
    radians = np.deg2rad(angle)
    along = np.stack([np.sin(radians), np.cos(radians)])
    ahead = np.arange(taps)[:, None] * along[:, None] - 0.5
    return np.ceil(ahead).astype(np.int64)


def motion(x: Levels, angle: Float64[np.ndarray, " N"], radius: float, sigma: float) -> Levels:
    """Blur image n along ``angle[n]``, to whole levels; the outermost pixels go on for ever."""
    height, width = x.shape[2:]
    k = weights(radius, sigma)
    rows, columns = offsets(angle, len(k))
    up, left = -min(rows.min(), 0), -min(columns.min(), 0)
    down, right = max(rows.max(), 0), max(columns.max(), 0)
    padded = np.pad(x, ((0, 0), (0, 0), (up, down), (left, right)), mode="edge")
    windows = sliding_window_view(padded, (height, width), axis=(2, 3))
    image = np.arange(len(x))
    y = np.zeros_like(x)
    for tap, weight in enumerate(k):
        y += x.dtype.type(weight) * windows[image, :, up + rows[tap], left + columns[tap]]
    return np.rint(y)
