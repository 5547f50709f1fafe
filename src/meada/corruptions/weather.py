"""Weather corruptions: snow, frost, fog and brightness."""

import numpy as np

from meada.corruptions.arrays import Layer, Levels
from meada.corruptions.colour import luma, with_value
from meada.corruptions.frost import crop, textures
from meada.corruptions.motion import motion
from meada.corruptions.operators import zoom_matrix
from meada.corruptions.plasma import plasma
from meada.streams import Streams


def snow(
    x: Levels,
    rng: Streams,
    mean: float,
    deviation: float,
    zoom: float,
    threshold: float,
    radius: float,
    sigma: float,
    keep: float,
) -> Levels:
    """Flakes: bright spots of enlarged noise, blurred as they fall, twice over a paler image."""
    flakes = _flakes(rng, x.shape[2], x.shape[3], mean, deviation, zoom, threshold).astype(x.dtype)
    fallen = motion(flakes[:, None], rng.uniform((), -135.0, -45.0, lane=1), radius, sigma)
    pale = np.maximum(x, luma(x) * 1.5 + 127.5)
    return x * keep + pale * (1 - keep) + fallen + fallen[:, :, ::-1, ::-1]


def _flakes(
    rng: Streams,
    height: int,
    width: int,
    mean: float,
    deviation: float,
    zoom: float,
    threshold: float,
) -> Layer:
    """The layer before it is blurred, in whole levels; only what the zoom shows is drawn."""
    (_, rows), (_, columns) = zoom_matrix(height, zoom), zoom_matrix(width, zoom)
    noise = mean + deviation * rng.normal((rows.shape[1], columns.shape[1]))
    large = rows.astype(np.float32) @ noise @ columns.astype(np.float32).T
    return np.floor(255 * np.clip(np.where(large < threshold, 0, large), 0, 1))


def frost(x: Levels, rng: Streams, keep: float, ice: float, scale: float) -> Levels:
    """The image behind one of five pictures of frost, cut out at random."""
    pictures = textures(scale, *x.shape[2:])
    frozen = crop(pictures, rng, *x.shape[2:]).astype(x.dtype)
    return keep * x + ice * (luma(frozen) if x.shape[1] == 1 else frozen)


def fog(x: Levels, rng: Streams, thickness: float, decay: float) -> Levels:
    """Banks of white that rise over the image, which is then darkened to its old maximum."""
    bright = x.max((1, 2, 3), keepdims=True)
    height, width = x.shape[2:]
    banks = plasma(rng, height, width, decay)[:, None].astype(x.dtype)
    return (x + 255 * thickness * banks) * (bright / (bright + 255 * thickness))


def brightness(x: Levels, rng: Streams, more: float) -> Levels:
    """More of HSV's value."""
    return with_value(x, more)
