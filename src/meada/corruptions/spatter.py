"""Spatter on the lens: shiny drops of water, or opaque mud."""

import numpy as np
from jaxtyping import Bool, Float64, Int64
from scipy.ndimage import correlate, distance_transform_edt, generate_binary_structure, label

from meada.corruptions.operators import Layer, Levels, gaussian, luma
from meada.streams import Streams

WATER = np.array([175, 238, 238])  # pale turquoise
MUD = np.array([63, 42, 20])
FAR = 20.0  # pixels from a rim beyond which all water looks the same
SOBEL = np.array([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]])
EMBOSS = np.array([[-2.0, -1, 0], [-1, 1, 1], [0, 1, 2]])
SPACING = 1e4  # pixels between two images of a stack, so that none sees another's rims


def spatter(x: Levels, rng: Streams, *numbers: float) -> Levels:
    """Drops where smoothed noise exceeds ``threshold``; ``strength`` is for water, blur for mud."""
    mean, deviation, sigma, threshold, strength, mud = numbers
    noise = mean + deviation * rng.normal(x.shape[2:]).astype(np.float64)
    liquid = gaussian(noise, sigma)
    liquid = np.where(liquid < threshold, 0, liquid)
    colour = (MUD if mud else WATER)[:, None, None].astype(x.dtype)
    colour = luma(colour[None])[0] if x.shape[1] == 1 else colour
    if mud:
        cover = gaussian((liquid > threshold).astype(np.float64), strength)
        cover = np.where(cover < 0.8, 0, cover)[:, None]
        return x * (1 - cover) + colour * cover
    return x + (strength * shine(np.floor(liquid * 255)))[:, None] * colour


def shine(liquid: Layer) -> Layer:
    """Brightness of the water, at most 1: its embossed distance to the drops' edges."""
    distance = chamfer(edges(liquid, 50.0, 150.0))
    relief = equalise(np.floor(_box(np.minimum(distance, FAR))).astype(np.int64))
    lit = np.rint(_box(np.clip(correlate(relief, EMBOSS[None], mode="mirror"), 0, 255))) * liquid
    return lit / np.maximum(lit.max((1, 2), keepdims=True), 1e-12)


def edges(levels: Layer, low: float, high: float) -> Layer:
    """Canny's edges, as 0 and 1: ridges of the Sobel gradient, weak ones if strong ones join."""
    across, down = (correlate(levels, kernel[None], mode="nearest") for kernel in (SOBEL, SOBEL.T))
    slope = np.abs(across) + np.abs(down)
    ridge = _is_ridge(slope, across, down) & (slope > low)
    in_plane = np.zeros((3, 3, 3), bool)
    in_plane[1] = generate_binary_structure(2, 2)
    lines, count = label(ridge, in_plane)
    strong = np.zeros(count + 1, bool)
    strong[lines[ridge & (slope > high)]] = True
    return strong[lines].astype(np.float64)


def _is_ridge(slope: Layer, across: Layer, down: Layer) -> Bool[np.ndarray, "N H W"]:
    """Non-maximum suppression: larger than one neighbour along the gradient and no smaller than the other."""
    pad = np.pad(slope, ((0, 0), (1, 1), (1, 1)))
    height, width = slope.shape[1:]
    at = lambda i, j: pad[:, 1 + i : 1 + i + height, 1 + j : 1 + j + width]
    a, d = np.abs(across), np.abs(down)
    level, steep = d < np.tan(np.pi / 8) * a, d > np.tan(3 * np.pi / 8) * a
    falling = (across * down) >= 0  # the gradient points down right or up left
    sides = (slope > at(0, -1)) & (slope >= at(0, 1))
    ends = (slope > at(-1, 0)) & (slope >= at(1, 0))
    main = (slope > at(-1, -1)) & (slope > at(1, 1))
    other = (slope > at(-1, 1)) & (slope > at(1, -1))
    return np.where(level, sides, np.where(steep, ends, np.where(falling, main, other)))


def chamfer(rims: Layer) -> Layer:
    """Distance to the nearest edge in straight, diagonal and knight's steps of 1, 1.4 and 2.1969."""
    if not rims.any():
        return np.full(rims.shape, FAR)
    _, (image, row, column) = distance_transform_edt(rims == 0, sampling=(SPACING, 1, 1), return_indices=True)
    n, i, j = np.indices(rims.shape)
    near, far = np.sort([np.abs(row - i), np.abs(column - j)], axis=0)
    knights = np.where(2 * near <= far, near, far - near)
    steps = 2.1969 * knights + np.where(2 * near <= far, far - 2 * near, 1.4 * (2 * near - far))
    return np.where(image == n, steps, FAR)


def equalise(levels: Int64[np.ndarray, "N H W"]) -> Float64[np.ndarray, "N H W"]:
    """Histogram equalisation of each image; its lowest level becomes 0."""
    n, pixels = len(levels), levels[0].size
    offset = 256 * np.arange(n)[:, None, None]
    counts = np.bincount((levels + offset).ravel(), minlength=256 * n).reshape(n, 256)
    lowest = np.take_along_axis(counts, levels.min((1, 2))[:, None], 1)
    rest = pixels - lowest
    table = np.rint(np.maximum(counts.cumsum(1) - lowest, 0) * (255 / np.maximum(rest, 1)))
    spread = table.ravel()[levels + offset]
    return np.where(rest[..., None] == 0, levels, spread)  # one level only: it stays


def _box(x: Layer) -> Layer:
    return correlate(x, np.full((1, 3, 3), 1 / 9), mode="mirror") + 1e-9
