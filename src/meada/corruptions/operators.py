"""Shared by several corruptions: array types, Gaussian blur and zoom as matrices, grey values."""

from functools import lru_cache
from math import ceil

import numpy as np
from jaxtyping import Float, Float64
from scipy import sparse
from scipy.ndimage import gaussian_filter1d, zoom

Levels = Float[np.ndarray, "N C H W"]  # pixels on the scale 0..255, not yet cut to it
Matrix = Float64[np.ndarray, "out in"]
Layer = Float[np.ndarray, "N H W"]  # one value a pixel, whatever the channels

# Truncation to 8 bits turns a rounding error just below a level into a whole level lost, so linear
# filters, which owe a flat area its own level, lift their result by more than their rounding.
LIFT = 1e-7  # of sums in double precision
LIFT_SINGLE = 1e-3  # in single
LUMA = np.array([0.299, 0.587, 0.114])  # ITU-R BT.601


def gaussian(x: Levels | Layer, sigma: float, mode: str = "nearest", truncate: float = 4.0) -> Levels | Layer:
    """Gaussian blur of the last two axes, in the precision of ``x``."""
    if int(truncate * sigma + 0.5) == 0:  # the kernel is its middle
        return x
    height, width = x.shape[-2:]
    rows, columns = (gaussian_matrix(size, sigma, mode, truncate).astype(x.dtype) for size in (height, width))
    return rows @ x @ columns.T


@lru_cache(maxsize=32)
def gaussian_matrix(size: int, sigma: float, mode: str, truncate: float) -> Matrix:
    return gaussian_filter1d(np.eye(size), sigma, axis=0, mode=mode, truncate=truncate)


@lru_cache(maxsize=16)
def zoom_matrix(size: int, factor: float) -> tuple[slice, Matrix]:
    """Matrix that enlarges the centre to the full size by linear interpolation.

    >>> part, matrix = zoom_matrix(32, 2.0)
    >>> part, matrix.shape
    (slice(8, 24, None), (32, 16))
    """
    kept = ceil(size / factor)
    top = (size - kept) // 2
    matrix = zoom(np.eye(kept), (factor, 1), order=1)
    trim = (len(matrix) - size) // 2
    return slice(top, top + kept), matrix[trim : trim + size]


@lru_cache(maxsize=256)
def zoom_in_full(size: int, factor: float) -> sparse.csr_array:
    """``zoom_matrix`` as a sparse matrix over the full length."""
    part, matrix = zoom_matrix(size, factor)
    full = np.zeros((size, size))
    full[:, part] = matrix
    return sparse.csr_array(full)


def apply(operator: sparse.csr_array, x: Levels) -> Float[np.ndarray, "N C H W"]:
    """Multiply the pixels of each channel (row-major) by the matrix ``operator``.

    A sparse product is the same sequence of multiplications and additions for each image, so the
    result does not depend on what else is in the batch, to the last bit.
    """
    columns = np.ascontiguousarray(x.reshape(-1, operator.shape[1]).T, dtype=np.float64)
    return ((operator @ columns).T + LIFT).reshape(x.shape)


def luma(x: Levels) -> Float[np.ndarray, "N 1 H W"]:
    """Luma of an RGB image; a single channel is returned unchanged."""
    if x.shape[1] == 1:
        return x
    r, g, b = LUMA.astype(x.dtype)
    return r * x[:, 0:1] + g * x[:, 1:2] + b * x[:, 2:3]


def ratio(top: Levels, bottom: Levels) -> Levels:
    """``top / bottom``, and 0 where both are 0."""
    return top / np.where(bottom > 0, bottom, 1)
