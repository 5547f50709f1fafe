"""Digital corruptions: contrast, saturation, elastic transform, pixelation and JPEG."""

from functools import lru_cache
from io import BytesIO

import numpy as np
import torch
from jaxtyping import Float, Float64, UInt8
from PIL import Image
from torch.nn.functional import grid_sample

from meada.corruptions.operators import LIFT_SINGLE, Layer, Levels, gaussian, luma, ratio
from meada.streams import Streams

Resized = Float[np.ndarray, "N C {height} {width}"]
Map = Float64[np.ndarray, "N 2 3"]  # (x, y, 1) of a target pixel -> (x, y) in the source
Picture = UInt8[np.ndarray, "H W"] | UInt8[np.ndarray, "H W 3"]
FIXED_POINT = 1 << 22  # Pillow weighs in fixed point, 22 bits after the point


def contrast(x: Levels, rng: Streams, share: float) -> Levels:
    """Scale each channel's difference from its mean over the image by ``share``."""
    mean = x.mean((2, 3), keepdims=True, dtype=np.float64)
    return (x - mean) * share + mean


def saturate(x: Levels, rng: Streams, factor: float, more: float) -> Levels:
    """HSV saturation times ``factor`` plus ``more``, clamped to [0, 1]; grey has the hue of red.

    In HSV a channel is v - v s k, with k in [0, 1] a matter of hue alone. So a change of s scales the
    channel's distance from v by s'/s (and one of v by v'/v, see ``brightness``); hue is never computed.
    """
    if x.shape[1] == 1:
        return luma(saturate(np.repeat(x, 3, axis=1), rng, factor, more))
    x = x / 255.0
    v = x.max(1, keepdims=True)
    s = ratio(v - x.min(1, keepdims=True), v)
    richer = np.clip(s * factor + more, 0, 1)
    coloured = v - (v - x) * ratio(richer, s)
    red = v * (1 - richer * np.array([0.0, 1.0, 1.0])[:, None, None])
    return np.where(s > 0, coloured, red) * 255


def pixelate(x: Levels, rng: Streams, share: float) -> Levels:
    """Resize to ``share`` of the size and back with Pillow's BOX filter; 8 bits."""
    height, width = x.shape[2:]
    small = shrink(np.rint(x), int(height * share), int(width * share))
    return enlarge(small, height, width)


def jpeg_compression(x: Levels, rng: Streams, quality: float) -> Levels:
    """Encode each image as JPEG with Pillow and decode it; 8 bits."""
    whole = np.clip(np.rint(x), 0, 255).astype(np.uint8)
    channels_last = np.ascontiguousarray(whole.transpose(0, 2, 3, 1))
    pictures = channels_last[..., 0] if x.shape[1] == 1 else channels_last
    decoded = np.stack([_through_jpeg(picture, int(quality)) for picture in pictures])
    return decoded.reshape(channels_last.shape).transpose(0, 3, 1, 2).astype(x.dtype)


def _through_jpeg(picture: Picture, quality: int) -> Picture:
    file = BytesIO()
    Image.fromarray(picture).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file))


def shrink(x: Levels, height: int, width: int) -> Resized:
    """Shrink 8-bit levels, bitwise equal to Pillow's BOX filter.

    A target pixel is the mean of the pixels whose centres lie in its cell, along rows and then along
    columns, rounded to 8 bits after each.
    """
    if max(x.shape[2] / height, x.shape[3] / width) > 5:
        # from six pixels in a cell a mean can be a tie, which single precision might round wrongly
        x = x.astype(np.float64)
    rows, columns = box_weights(x.shape[2], height), box_weights(x.shape[3], width)
    across = np.floor(x @ columns.T.astype(x.dtype) + x.dtype.type(0.5))
    return np.floor(rows.astype(x.dtype) @ across + x.dtype.type(0.5))


def enlarge(x: Levels, height: int, width: int) -> Resized:
    """Enlarge with nearest-neighbour interpolation, as the BOX filter does."""
    rows, columns = (box_weights(old, new).argmax(1) for old, new in zip(x.shape[2:], (height, width), strict=True))
    flat = x.reshape(*x.shape[:2], -1)
    source = (rows[:, None] * x.shape[3] + columns).ravel()
    return flat.take(source, axis=2).reshape(*x.shape[:2], height, width)


@lru_cache(maxsize=32)
def box_weights(size: int, target: int) -> Float64[np.ndarray, "{target} {size}"]:
    """Equal weights of the pixels whose centres lie in the cell of each target pixel.

    >>> box_weights(4, 2).tolist()
    [[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]]
    """
    scale = size / target
    cell = max(scale, 1.0)
    pixel, centre = np.arange(size), (np.arange(target)[:, None] + 0.5) * scale
    # a centre on the border of two cells falls to either by rounding: the order of work is Pillow's
    position = (pixel - centre + 0.5) * (1.0 / cell)
    near = (pixel >= np.floor(centre - 0.5 * cell + 0.5)) & (pixel < np.floor(centre + 0.5 * cell + 0.5))
    inside = (near & (position > -0.5) & (position <= 0.5)).astype(np.float64)
    return np.floor(inside / inside.sum(1, keepdims=True) * FIXED_POINT + 0.5) / FIXED_POINT


def elastic_transform(x: Levels, rng: Streams, alpha: float, sigma: float, affine: float) -> Levels:
    """Random affine map that moves corners by up to ``affine`` pixels, then smooth displacements; mirrored."""
    height, width = x.shape[2:]
    columns, rows = np.meshgrid(np.arange(width), np.arange(height))
    a, b, c = affine_maps(rng, height, width, affine).transpose(2, 1, 0)[..., None, None]
    across, along = a * columns + b * rows + c
    bent = sample(x, across, along, "about pixels")
    if alpha == 0:
        return bent + LIFT_SINGLE
    right, down = (field(rng, height, width, alpha, sigma, lane) for lane in (1, 2))
    return sample(bent, columns + right, rows + down, "about edges") + LIFT_SINGLE


def affine_maps(rng: Streams, height: int, width: int, reach: float) -> Map:
    """Affine maps that send three moved points back to their places."""
    x, y, side = width // 2, height // 2, min(height, width) // 3
    points = np.array([[x + side, y + side], [x + side, y - side], [x - side, y - side]], np.float64)
    moved = points + rng.uniform((3, 2), -reach, reach)
    corners = np.concatenate([moved, np.ones_like(moved[..., :1])], 2)
    return np.linalg.solve(corners, np.broadcast_to(points, moved.shape)).swapaxes(1, 2)


def field(rng: Streams, height: int, width: int, alpha: float, sigma: float, lane: int) -> Layer:
    """Displacements along one axis: white noise in [-1, 1], smoothed and scaled."""
    noise = rng.sixteen((height, width), lane) * np.float32(2 / 65536) - np.float32(1)
    return gaussian(noise, sigma, mode="reflect", truncate=3.0) * np.float32(alpha)


def sample(x: Levels, columns: Layer, rows: Layer, mirror: str) -> Levels:
    """Bilinear look-up; the image is mirrored about its outermost pixels or about its edges."""
    height, width = x.shape[2:]
    corners = mirror == "about pixels"
    grid = np.empty((*columns.shape, 2), x.dtype)
    if corners:
        grid[..., 0], grid[..., 1] = 2 * columns / (width - 1) - 1, 2 * rows / (height - 1) - 1
    else:
        grid[..., 0], grid[..., 1] = (2 * columns + 1) / width - 1, (2 * rows + 1) / height - 1
    image, places = torch.from_numpy(np.ascontiguousarray(x)), torch.from_numpy(grid)
    return grid_sample(image, places, padding_mode="reflection", align_corners=corners).numpy()
