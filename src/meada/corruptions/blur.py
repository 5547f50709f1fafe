"""Blur corruptions: defocus, frosted glass, motion and zoom; Gaussian blur for validation."""

from functools import lru_cache
from math import ceil

import numpy as np
from jaxtyping import Bool, Float64, Int64
from numpy.lib.stride_tricks import sliding_window_view
from scipy import sparse
from scipy.ndimage import correlate1d

from meada.corruptions.operators import LIFT, Levels, apply, gaussian, zoom_in_full
from meada.streams import Streams

Sources = Int64[np.ndarray, "N P"]  # for each pixel, the one whose old colour it takes

SPARSE_LIMIT = 32 * 224  # pixels of an image up to which a whole filter is kept as one sparse matrix


def defocus_blur(x: Levels, rng: Streams, radius: float, alias: float) -> Levels:
    """Convolve with a disk whose edge is smoothed by ``alias``; mirrored at the border."""
    height, width = x.shape[2:]
    kernel = disk(radius, alias)
    if height * width < SPARSE_LIMIT and (kernel > 0).sum() <= 32:  # few taps: cheaper one by one
        return apply(_filter(radius, alias, height, width), x)
    from scipy.signal import fftconvolve  # takes a second to import

    reach = len(kernel) // 2
    around = ((0, 0), (0, 0), (reach, reach), (reach, reach))
    padded = np.pad(x.astype(np.float64), around, mode="reflect")
    return fftconvolve(padded, kernel[None, None], mode="valid", axes=(2, 3)) + LIFT


def glass_blur(x: Levels, rng: Streams, sigma: float, reach: float, rounds: float) -> Levels:
    """Replace pixels by near ones between two slight blurs, with 8-bit levels in between."""
    smooth = np.floor(gaussian(x.astype(np.float64), sigma) + LIFT)
    return gaussian(glass_shuffle(smooth, rng, int(reach), int(rounds)), sigma) + LIFT


def motion_blur(x: Levels, rng: Streams, radius: float, sigma: float) -> Levels:
    """Blur along a line to the right, up to 45 degrees up or down; rounded to 8 bits."""
    return motion(x, rng.uniform((), -45.0, 45.0), radius, sigma)


def zoom_blur(x: Levels, rng: Streams, stop: float, step: float) -> Levels:
    """Mean of the image and of its centre enlarged by increasing factors."""
    height, width = x.shape[2:]
    factors = np.arange(1, stop, step)  # rounding lets ``stop`` in, as it does in the publication
    if height * width < SPARSE_LIMIT:
        return apply(_zooms(tuple(factors), height, width), x)
    return zoomed(x, tuple(factors)) + LIFT


def gaussian_blur(x: Levels, rng: Streams, sigma: float) -> Levels:
    return gaussian(x.astype(np.float64), sigma) + LIFT


def disk(radius: float, alias: float) -> Float64[np.ndarray, "side side"]:
    """A disk kernel smoothed by a small Gaussian; mirrored at the border of the grid.

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
    smooth = correlate1d(np.eye(len(line)), g / g.sum(), axis=0, mode="mirror")
    kernel = smooth @ (circle / circle.sum()) @ smooth.T
    return np.where(kernel > 1e-12, kernel, 0)


@lru_cache(maxsize=16)
def _filter(radius: float, alias: float, height: int, width: int) -> sparse.csr_array:
    """The convolution with the kernel as a matrix on pixels; mirrored at the border."""
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


@lru_cache(maxsize=16)
def _zooms(factors: tuple[float, ...], height: int, width: int) -> sparse.csr_array:
    """The zoom blur as one matrix on pixels."""
    total = sparse.eye_array(height * width, format="csr")
    for factor in factors:
        rows, columns = zoom_in_full(height, factor), zoom_in_full(width, factor)
        total = total + sparse.kron(rows, columns, format="csr")
    return sparse.csr_array(total / (len(factors) + 1))


def zoomed(x: Levels, factors: tuple[float, ...]) -> Levels:
    """The zoom blur one factor at a time, along columns, then along rows."""
    n, channels, height, width = x.shape
    columns_first = np.ascontiguousarray(x.transpose(3, 2, 0, 1), dtype=np.float64)
    total = x.transpose(2, 3, 0, 1).astype(np.float64).reshape(height, -1)
    for factor in factors:
        across = zoom_in_full(width, factor) @ columns_first.reshape(width, -1)
        rows_first = across.reshape(width, height, -1).swapaxes(0, 1)
        total += zoom_in_full(height, factor) @ rows_first.reshape(height, -1)
    mean = total.reshape(height, width, n, channels) / (len(factors) + 1)
    return mean.transpose(2, 3, 0, 1)


def glass_shuffle(x: Levels, rng: Streams, reach: int, rounds: int) -> Levels:
    """``rounds`` passes, last pixel first, in which a pixel copies one up to ``reach`` rows and columns away.

    The publication means to swap two pixels, but both sides of its assignment are views of one array,
    so the first pixel is overwritten and the second keeps its colour: the published files hold copies,
    and so do these. A copy has a closed form. Pixel p takes what q held: q's old colour where q comes
    after p in the order of work (or is p), and q's new one where it came before, so the chain goes on.
    Chains are followed by doubling, for all pixels of all images at once.
    """
    n, channels, height, width = x.shape
    y = x.reshape(n, channels, -1)
    for lane in range(rounds):
        source = glass_sources(rng, height, width, reach, lane)
        y = np.take_along_axis(y, source[:, None], axis=2)
    return y.reshape(x.shape)


def glass_sources(rng: Streams, height: int, width: int, reach: int, lane: int) -> Sources:
    """Source index of each pixel after one pass; offsets are from -reach to reach - 1."""
    draws = rng.sixteen((2, height * width), lane).astype(np.int64)
    down, right = ((draws * (2 * reach)) >> 16).transpose(1, 0, 2) - reach
    here = np.arange(height * width)
    target = np.where(_replaced_pixels(height, width, reach), here + down * width + right, here)
    return target if reach == 1 else follow_chains(target)  # reach 1 only looks at pixels still to come


def follow_chains(target: Sources) -> Sources:
    """Resolve chains of copies: a source that was itself overwritten before is replaced by its own source."""
    here = np.arange(target.shape[1])
    old = target <= here  # the order of work is from the last pixel to the first
    while not old.all():
        # a pixel whose chain has not ended jumps to where its target has got to
        onward = np.take_along_axis(target, target, 1)
        ended = np.take_along_axis(old, target, 1)
        target, old = np.where(old, target, onward), old | ended
    return target


@lru_cache(maxsize=8)
def _replaced_pixels(height: int, width: int, reach: int) -> Bool[np.ndarray, " P"]:
    """Mask of the pixels that are replaced: rows and columns from reach + 1 to size - reach."""
    rows, columns = np.zeros(height, bool), np.zeros(width, bool)
    rows[reach + 1 : height - reach + 1] = True
    columns[reach + 1 : width - reach + 1] = True
    return (rows[:, None] & columns).ravel()


def motion_weights(radius: float, sigma: float) -> Float64[np.ndarray, " taps"]:
    """Weights of the pixel and of those along the line, without weights too small for 16 bits.

    >>> motion_weights(6.0, 1.0).round(3)
    array([0.57 , 0.346, 0.077, 0.006, 0.   , 0.   ])
    """
    taps = np.arange(2 * ceil(radius) + 1)
    k = np.exp(-(taps**2) / (2 * sigma**2))
    k /= k.sum()
    return k[k > 1e-6]


def offsets(angle: Float64[np.ndarray, " N"], taps: int) -> Int64[np.ndarray, "2 taps N"]:
    """Offset (rows, columns) of each tap; the angle is in degrees, clockwise from the right."""
    radians = np.deg2rad(angle)
    along = np.stack([np.sin(radians), np.cos(radians)])
    ahead = np.arange(taps)[:, None] * along[:, None] - 0.5
    return np.ceil(ahead).astype(np.int64)


def motion(x: Levels, angle: Float64[np.ndarray, " N"], radius: float, sigma: float) -> Levels:
    """ImageMagick's motion blur: a one-sided Gaussian along a line of whole pixels, at ``angle[n]`` for image n.

    To whole levels; the outermost pixels go on for ever.
    """
    height, width = x.shape[2:]
    k = motion_weights(radius, sigma)
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
