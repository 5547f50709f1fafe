"""Digital: contrast, elastic deformation, pixelation and JPEG."""

from io import BytesIO

import numpy as np
from PIL import Image

from meada.corruptions.arrays import LIFT_SINGLE, Levels, Picture, eight_bits
from meada.corruptions.resample import enlarge, shrink
from meada.corruptions.streams import Streams
from meada.corruptions.warp import elastic


def contrast(x: Levels, rng: Streams, share: float) -> Levels:
    """Each channel keeps ``share`` of its distance from its mean over the image."""
    mean = x.mean((2, 3), keepdims=True, dtype=np.float64)
    return (x - mean) * share + mean


def elastic_transform(x: Levels, rng: Streams, alpha: float, sigma: float, affine: float) -> Levels:
    """A random affine map, then a smooth field of shifts; mirrored at the border."""
    return elastic(x, rng, alpha, sigma, affine) + LIFT_SINGLE


def pixelate(x: Levels, rng: Streams, share: float) -> Levels:
    """Down to ``share`` of the size and up again, by Pillow's BOX filter; 8 bits."""
    height, width = x.shape[2:]
    small = shrink(np.rint(x), int(height * share), int(width * share))
    return enlarge(small, height, width)


def jpeg_compression(x: Levels, rng: Streams, quality: float) -> Levels:
    """Through Pillow's JPEG encoder and back, image by image; 8 bits."""
    pixels = eight_bits(x)
    return np.stack([_through_jpeg(image, int(quality)) for image in pixels]).astype(x.dtype)


def _through_jpeg(image: Picture, quality: int) -> Picture:
    file = BytesIO()
    channels_last = image[0] if len(image) == 1 else image.transpose(1, 2, 0)
    Image.fromarray(np.ascontiguousarray(channels_last)).save(file, "JPEG", quality=quality)
    decoded = np.asarray(Image.open(file))
    return decoded[None] if len(image) == 1 else decoded.transpose(2, 0, 1)
