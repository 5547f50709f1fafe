"""``corrupt``: apply a named corruption at a severity to a batch of images."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import torch

from meada.corruptions import blur, digital, noise, weather
from meada.corruptions.constants import constants_of, table_for
from meada.corruptions.operators import Levels
from meada.corruptions.spatter import spatter
from meada.errors import MeadaError, nearest
from meada.images.inputs import as_images
from meada.streams import Streams, positions_of, sample_streams

Batch = TypeVar("Batch", np.ndarray, torch.Tensor)

BENCHMARK: dict[str, Callable[..., Levels]] = {
    "gaussian_noise": noise.gaussian_noise,
    "shot_noise": noise.shot_noise,
    "impulse_noise": noise.impulse_noise,
    "defocus_blur": blur.defocus_blur,
    "glass_blur": blur.glass_blur,
    "motion_blur": blur.motion_blur,
    "zoom_blur": blur.zoom_blur,
    "snow": weather.snow,
    "frost": weather.frost,
    "fog": weather.fog,
    "brightness": weather.brightness,
    "contrast": digital.contrast,
    "elastic_transform": digital.elastic_transform,
    "pixelate": digital.pixelate,
    "jpeg_compression": digital.jpeg_compression,
}
HELD_OUT: dict[str, Callable[..., Levels]] = {
    "speckle_noise": noise.speckle_noise,
    "gaussian_blur": blur.gaussian_blur,
    "spatter": spatter,
    "saturate": digital.saturate,
}
FUNCTIONS = BENCHMARK | HELD_OUT
CORRUPTIONS = tuple(BENCHMARK)  # the fifteen, in the order of the benchmark's tables
VALIDATION = tuple(HELD_OUT)
SEVERITIES = (1, 2, 3, 4, 5)

SIDES = range(28, 513)
BLOCK = 1 << 17  # values worked on at once: what the second-level cache holds a few times over


def corrupt(
    images: Batch, name: str, severity: int, *, seed: int = 0, index: Any = None, constants: str | None = None
) -> Batch:
    """Images (N, C, H, W) under corruption ``name`` at ``severity`` 1 to 5: same type, same shape.

    ``images`` is a tensor or an array, with 1 or 3 channels and sides from 28 to 512, of 8 bits or of floats in [0, 1].
    ``index`` is each image's place in its data set, by default in the batch: with ``seed``, ``name`` and ``severity``
    it fixes the random numbers, so that an image gets the same pixels in any batch. ``constants`` names a table of
    strengths, "cifar" (32x32) or "imagenet" (224x224), by default the one nearer in size. 8-bit results are truncated,
    as the published files are; float results are not rounded.

    >>> images = np.full((2, 3, 32, 32), 100, np.uint8)
    >>> int(corrupt(images, "brightness", 1)[0, 0, 0, 0])  # 100 + 0.05 * 255 = 112.75, truncated
    112
    """
    pixels = _checked(images)
    if name not in FUNCTIONS:
        raise MeadaError(f"unknown corruption '{name}': {nearest(name, FUNCTIONS)}")
    if isinstance(severity, bool) or severity not in SEVERITIES:
        raise MeadaError(f"severity must be 1, 2, 3, 4 or 5, got {severity!r} for '{name}'")
    positions = positions_of(index, len(pixels))
    numbers = constants_of(constants or table_for(*pixels.shape[2:]))[name][severity - 1]
    result = np.empty_like(pixels)
    rng = sample_streams(int(seed), name, int(severity), positions)
    size = max(1, BLOCK // int(np.prod(pixels.shape[1:])))
    for first in range(0, len(pixels), size):
        block = slice(first, first + size)
        result[block] = _corrupt_block(pixels[block], FUNCTIONS[name], rng[block], numbers)
    return torch.from_numpy(result).to(images) if isinstance(images, torch.Tensor) else result


def _corrupt_block(
    pixels: np.ndarray, function: Callable[..., Levels], rng: Streams, numbers: tuple[float, ...]
) -> np.ndarray:
    """Convert to 8-bit levels, corrupt, and convert back to the input type."""
    if pixels.dtype == np.uint8:
        levels = function(pixels.astype(np.float32), rng, *numbers)
        return np.clip(levels, 0, 255, out=levels).astype(np.uint8)
    wide = np.float64 if pixels.dtype == np.float64 else np.float32
    levels = function(np.multiply(pixels, 255, dtype=wide), rng, *numbers)
    return (np.clip(levels, 0, 255) / 255).astype(pixels.dtype)


def _checked(images: Any) -> np.ndarray:
    """The images as an array; raise MeadaError if they are invalid."""
    if not isinstance(images, np.ndarray | torch.Tensor):
        raise MeadaError(f"images must be a tensor or an array, got {type(images).__name__}")
    pixels = as_images(images).cpu()
    if pixels.shape[1] not in (1, 3):
        raise MeadaError(f"images must have shape (N, C, H, W) with 1 or 3 channels, got {tuple(pixels.shape)}")
    if not set(pixels.shape[2:]) <= set(SIDES):
        raise MeadaError(f"images must have sides from 28 to 512 pixels, got {pixels.shape[2]}x{pixels.shape[3]}")
    return (pixels.float() if pixels.dtype == torch.bfloat16 else pixels).numpy()
