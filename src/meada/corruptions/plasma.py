"""Fog: a fractal height map by the diamond-square algorithm, one per image."""

import numpy as np
from jaxtyping import Float32

from meada.corruptions.arrays import Layer
from meada.streams import Streams


def plasma(rng: Streams, height: int, width: int, decay: float) -> Layer:
    """Heights in [0, 1] that wrap round; each halving of the scale divides the wibble by ``decay``.

    The wibble is squared, as published: its spread falls by ``decay`` squared from scale to scale.
    """
    size = 1 << (max(height, width) - 1).bit_length()
    draws = rng.sixteen((size * size,)).T  # (draws, N): every step below is contiguous over images
    uniform = draws.astype(np.float32) * np.float32(2 / 65536) - np.float32(1 - 1 / 65536)
    heights = np.zeros((size, size, len(rng)), np.float32)
    used, wibble, step = 0, 100.0, size
    while step >= 2:
        used = _refine(heights, step, uniform, used, wibble**2)
        step, wibble = step // 2, wibble / decay
    heights -= heights.min((0, 1))
    heights /= heights.max((0, 1))
    return np.moveaxis(heights[:height, :width], 2, 0)


def _refine(
    m: Float32[np.ndarray, "S S N"],
    step: int,
    uniform: Float32[np.ndarray, "draws N"],
    used: int,
    amplitude: float,
) -> int:
    """Fill the middles of squares, then of diamonds: the mean of four corners and a wibble."""
    half = step // 2
    corner, middle = m[::step, ::step], m[half::step, half::step]
    above, left = m[::step, half::step], m[half::step, ::step]
    count = corner.shape[0] ** 2
    wibble = [uniform[used + i * count : used + (i + 1) * count].reshape(corner.shape) * amplitude for i in range(3)]
    down = corner + np.roll(corner, -1, 0)
    middle[:] = (down + np.roll(down, -1, 1)) / 4 + wibble[0]
    above[:] = (middle + np.roll(middle, 1, 0) + corner + np.roll(corner, -1, 1)) / 4 + wibble[1]
    left[:] = (middle + np.roll(middle, 1, 1) + corner + np.roll(corner, -1, 0)) / 4 + wibble[2]
    return used + 3 * count
