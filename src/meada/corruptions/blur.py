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
    """The image of a point is a disk, its rim smoothed by ``alias``; mirrored at the border."""
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
    """Pixels take the colour of near ones, between two slight blurs; 8 bits in the middle."""
    smooth = np.floor(gaussian(x.astype(np.float64), sigma) + LIFT)
    return gaussian(glass_shuffle(smooth, rng, int(reach), int(rounds)), sigma) + LIFT


def motion_blur(x: Levels, rng: Streams, radius: float, sigma: float) -> Levels:
    """The camera moves to the right, up to 45 degrees up or down; 8 bits, rounded."""
    return motion(x, rng.uniform((), -45.0, 45.0), radius, sigma)


def zoom_blur(x: Levels, rng: Streams, stop: float, step: float) -> Levels:
    """The mean of the image and of ever larger enlargements of its middle."""
    height, width = x.shape[2:]
    factors = np.arange(1, stop, step)  # rounding lets ``stop`` in, as it does in the publication
    if height * width < SPARSE_LIMIT:
        return apply(_zooms(tuple(factors), height, width), x)
    return zoomed(x, tuple(factors)) + LIFT


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
    smooth = correlate1d(np.eye(len(line)), g / g.sum(), axis=0, mode="mirror")
    kernel = smooth @ (circle / circle.sum()) @ smooth.T
    return np.where(kernel > 1e-12, kernel, 0)


@lru_cache(maxsize=16)
def _filter(radius: float, alias: float, height: int, width: int) -> sparse.csr_array:
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


@lru_cache(maxsize=16)
def _zooms(factors: tuple[float, ...], height: int, width: int) -> sparse.csr_array:
    """The mean over the image and its enlargements as one operator on pixels."""
    total = sparse.eye_array(height * width, format="csr")
    for factor in factors:
        rows, columns = zoom_in_full(height, factor), zoom_in_full(width, factor)
        total = total + sparse.kron(rows, columns, format="csr")
    return sparse.csr_array(total / (len(factors) + 1))


def zoomed(x: Levels, factors: tuple[float, ...]) -> Levels:
    """The same mean, one factor after the other and along columns, then along rows."""
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
    """Where each pixel's colour comes from after one pass; steps run from -reach to reach - 1."""
    draws = rng.sixteen((2, height * width), lane).astype(np.int64)
    down, right = ((draws * (2 * reach)) >> 16).transpose(1, 0, 2) - reach
    here = np.arange(height * width)
    target = np.where(_worked(height, width, reach), here + down * width + right, here)
    return target if reach == 1 else follow_chains(target)  # reach 1 only looks at pixels still to come


def follow_chains(target: Sources) -> Sources:
    """Resolve chains: a target later in memory has been worked on, so its own target counts."""
    here = np.arange(target.shape[1])
    old = target <= here  # the order of work is from the last pixel to the first
    while not old.all():
        # a pixel whose chain has not ended jumps to where its target has got to
        onward = np.take_along_axis(target, target, 1)
        ended = np.take_along_axis(old, target, 1)
        target, old = np.where(old, target, onward), old | ended
    return target


@lru_cache(maxsize=8)
def _worked(height: int, width: int, reach: int) -> Bool[np.ndarray, " P"]:
    """The pixels that look elsewhere: rows and columns from reach + 1 to size - reach."""
    rows, columns = np.zeros(height, bool), np.zeros(width, bool)
    rows[reach + 1 : height - reach + 1] = True
    columns[reach + 1 : width - reach + 1] = True
    return (rows[:, None] & columns).ravel()


def motion_weights(radius: float, sigma: float) -> Float64[np.ndarray, " taps"]:
    """Weights of the pixel itself and of those ahead, without the ones too small for 16 bits.

    >>> motion_weights(6.0, 1.0).round(3)
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
