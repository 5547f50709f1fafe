"""Digital corruptions: contrast, elastic transform, pixelation and JPEG."""

from io import BytesIO

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from meada.corruptions.arrays import LIFT_SINGLE, Levels, eight_bits
from meada.corruptions.resample import enlarge, shrink
from meada.corruptions.warp import elastic
from meada.streams import Streams

Picture = UInt8[np.ndarray, "H W"] | UInt8[np.ndarray, "H W 3"]


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
    channels_last = np.ascontiguousarray(eight_bits(x).transpose(0, 2, 3, 1))
    pictures = channels_last[..., 0] if x.shape[1] == 1 else channels_last
    decoded = np.stack([_through_jpeg(picture, int(quality)) for picture in pictures])
    return decoded.reshape(channels_last.shape).transpose(0, 3, 1, 2).astype(x.dtype)


def _through_jpeg(picture: Picture, quality: int) -> Picture:
    file = BytesIO()
    Image.fromarray(picture).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file))
