"""Elastic transform: a random affine map of the image, then a smooth displacement field."""

import numpy as np
import torch
from jaxtyping import Float64
from torch.nn.functional import grid_sample

from meada.corruptions.arrays import Layer, Levels
from meada.corruptions.operators import gaussian
from meada.streams import Streams

Map = Float64[np.ndarray, "N 2 3"]  # (x, y, 1) of a target pixel -> (x, y) in the source


def elastic(x: Levels, rng: Streams, alpha: float, sigma: float, affine: float) -> Levels:
    """Corners move by up to ``affine`` pixels, then points by fields of size ``alpha``."""
    height, width = x.shape[2:]
    bent = sample(x, *affine_grid(affine_maps(rng, height, width, affine), height, width), "about pixels")
    if alpha == 0:
        return bent
    right, down = (field(rng, height, width, alpha, sigma, lane) for lane in (1, 2))
    columns, rows = np.meshgrid(np.arange(width), np.arange(height))
    return sample(bent, columns + right, rows + down, "about edges")


def affine_maps(rng: Streams, height: int, width: int, reach: float) -> Map:
    """The maps that take three moved points back to where they were."""
    x, y, side = width // 2, height // 2, min(height, width) // 3
    points = np.array([[x + side, y + side], [x + side, y - side], [x - side, y - side]], np.float64)
    moved = points + rng.uniform((3, 2), -reach, reach)
    corners = np.concatenate([moved, np.ones_like(moved[..., :1])], 2)
    return np.linalg.solve(corners, np.broadcast_to(points, moved.shape)).swapaxes(1, 2)


def affine_grid(maps: Map, height: int, width: int) -> tuple[Layer, Layer]:
    """The source coordinates (x, y) of every pixel."""
    columns, rows = np.arange(width), np.arange(height)[:, None]
    a, b, c = maps.transpose(2, 1, 0)[..., None, None]
    x, y = a * columns + b * rows + c
    return x, y


def field(rng: Streams, height: int, width: int, alpha: float, sigma: float, lane: int) -> Layer:
    """Shifts along one axis: white noise in [-1, 1], smoothed and scaled."""
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
    pixels = grid_sample(
        torch.from_numpy(np.ascontiguousarray(x)),
        torch.from_numpy(grid),
        padding_mode="reflection",
        align_corners=corners,
    )
    return pixels.numpy()
