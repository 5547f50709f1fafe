"""Blur: out of focus, through rippled glass, of a moving camera and of one that moves forwards."""

from functools import lru_cache

import numpy as np
from jaxtyping import Float64
from scipy import sparse
from scipy.signal import fftconvolve

from meada.corruptions.arrays import LIFT, Levels
from meada.corruptions.glass import shuffle
from meada.corruptions.motion import motion
from meada.corruptions.operators import apply, gaussian, zoom_in_full
from meada.corruptions.streams import Streams

SMALL = 32 * 224  # pixels of an image up to which operators are kept: larger ones take megabytes


def defocus_blur(x: Levels, rng: Streams, radius: float, alias: float) -> Levels:
    """The image of a point is a disk, its rim smoothed by ``alias``; mirrored at the border."""
    kernel = disk(radius, alias)
    if (kernel > 0).sum() <= 32:  # few taps: cheaper one by one than by Fourier transform
        return apply(_filter(radius, alias, *x.shape[2:]), x)
    reach = len(kernel) // 2
    padded = np.pad(
        x.astype(np.float64), ((0, 0), (0, 0), (reach, reach), (reach, reach)), "reflect"
    )
    return fftconvolve(padded, kernel[None, None], mode="valid", axes=(2, 3)) + LIFT


def glass_blur(x: Levels, rng: Streams, sigma: float, reach: float, rounds: float) -> Levels:
    """Pixels trade places with near ones, between two slight blurs; 8 bits in the middle."""
    smooth = np.floor(gaussian(x.astype(np.float64), sigma) + LIFT)
    return gaussian(shuffle(smooth, rng, int(reach), int(rounds)), sigma) + LIFT


def motion_blur(x: Levels, rng: Streams, radius: float, sigma: float) -> Levels:
    """The camera moves to the right, up to 45 degrees up or down; 8 bits, rounded."""
    return motion(x, rng.uniform((), -45.0, 45.0), radius, sigma)


def zoom_blur(x: Levels, rng: Streams, stop: float, step: float) -> Levels:
    """The mean of the image and of ever larger enlargements of its middle."""
    return apply(_zooms(stop, step, *x.shape[2:]), x)


def gaussian_blur(x: Levels, rng: Streams, sigma: float) -> Levels:
    return gaussian(x.astype(np.float64), sigma) + LIFT


def disk(radius: float, alias: float) -> Float64[np.ndarray, "side side"]:
    """A filled circle smoothed by a small Gaussian that mirrors at the border of the grid.

    Where the circle touches that border (radii 8 and 10) the mirror adds one per cent to the sum,
    and the blurred image is that much lighter; the published one is, too.

    >>> disk(8.0, 0.5).sum().round(4)
    np.float64(1.013)
    """
    half, taps = (8, 3) if radius <= 8 else (int(radius), 5)
    line = np.arange(-half, half + 1)
    circle = (line[:, None] ** 2 + line**2 <= radius**2).astype(np.float64)
    offset = np.arange(taps) - taps // 2
    g = np.exp(-(offset**2) / (2 * alias**2))
    smooth = _mirrored(g / g.sum(), len(line))
    kernel = smooth @ (circle / circle.sum()) @ smooth.T
    return np.where(kernel > 1e-12, kernel, 0)


def _mirrored(g: Float64[np.ndarray, " taps"], size: int) -> Float64[np.ndarray, "size size"]:
    """The matrix of a correlation whose signal goes on mirrored about its first and last sample."""
    reach = len(g) // 2
    source = np.pad(np.arange(size), reach, mode="reflect")
    matrix = np.zeros((size, size))
    for tap, weight in enumerate(g):
        np.add.at(matrix, (np.arange(size), source[tap : tap + size]), weight)
    return matrix


def _filter(radius: float, alias: float, height: int, width: int) -> sparse.csr_array:
    return (_kept_filter if height * width < SMALL else _new_filter)(radius, alias, height, width)


def _new_filter(radius: float, alias: float, height: int, width: int) -> sparse.csr_array:
    """The kernel as an operator on pixels, mirrored at the border."""
    kernel = disk(radius, alias)
    reach = len(kernel) // 2
    pixels = np.arange(height * width).reshape(height, width)
    source = np.pad(pixels, reach, mode="reflect")
    taps = [(int(i), int(j)) for i, j in zip(*np.nonzero(kernel), strict=True)]
    columns = np.stack([source[i : i + height, j : j + width].ravel() for i, j in taps], 1)
    values = np.broadcast_to([kernel[tap] for tap in taps], columns.shape)
    rows = np.broadcast_to(pixels.reshape(-1, 1), columns.shape)
    entries = (values.ravel(), (rows.ravel(), columns.ravel()))
    return sparse.coo_array(entries, shape=(pixels.size, pixels.size)).tocsr()


def _zooms(stop: float, step: float, height: int, width: int) -> sparse.csr_array:
    return (_kept_zooms if height * width < SMALL else _new_zooms)(stop, step, height, width)


def _new_zooms(stop: float, step: float, height: int, width: int) -> sparse.csr_array:
    factors = np.arange(1, stop, step)  # rounding lets ``stop`` in, as it does in the publication
    total = sparse.eye_array(height * width, format="csr")
    for factor in factors:
        rows, columns = (sparse.csr_array(zoom_in_full(n, float(factor))) for n in (height, width))
        total = total + sparse.kron(rows, columns, format="csr")
    return sparse.csr_array(total / (len(factors) + 1))


_kept_filter = lru_cache(maxsize=16)(_new_filter)
_kept_zooms = lru_cache(maxsize=16)(_new_zooms)
