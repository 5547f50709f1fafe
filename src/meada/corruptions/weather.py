"""Weather corruptions: snow, frost, fog and brightness."""

from functools import cache, lru_cache
from pathlib import Path

import numpy as np
from jaxtyping import Float, Float32, UInt8
from numpy.lib.stride_tricks import sliding_window_view
from PIL import Image, ImageDraw
from scipy.ndimage import gaussian_filter

from meada.corruptions.blur import motion
from meada.corruptions.operators import Layer, Levels, luma, ratio, zoom_matrix
from meada.files import data_root
from meada.streams import Streams, sample_streams

Picture = UInt8[np.ndarray, "3 _ _"]  # each of a size of its own
# A sixth photograph of frost, frost6.jpg, is published and never drawn: the generator draws from five.
PHOTOGRAPHS = ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg")
# Mean red, green, blue and the deviation of the grey, of the five photographs.
TONES = ((78, 149, 166, 18), (201, 205, 214, 22), (201, 205, 214, 22), (138, 153, 165, 29), (112, 123, 135, 43))
SIZE = (495, 660)  # rows and columns of a generated texture: those of the fifth photograph
FERNS = 260
TWIGS = 24  # on each side of a stem


def snow(x: Levels, rng: Streams, *numbers: float) -> Levels:
    """Snow: thresholded, enlarged noise with motion blur, added twice to a paler image."""
    mean, deviation, zoom, threshold, radius, sigma, keep = numbers
    # only what the zoom shows is drawn
    rows, columns = (zoom_matrix(side, zoom)[1].astype(np.float32) for side in x.shape[2:])
    large = rows @ (mean + deviation * rng.normal((rows.shape[1], columns.shape[1]))) @ columns.T
    flakes = np.floor(255 * np.clip(np.where(large < threshold, 0, large), 0, 1))
    fallen = motion(flakes[:, None].astype(x.dtype), rng.uniform((), -135.0, -45.0, lane=1), radius, sigma)
    pale = np.maximum(x, luma(x) * 1.5 + 127.5)
    return x * keep + pale * (1 - keep) + fallen + fallen[:, :, ::-1, ::-1]


def frost(x: Levels, rng: Streams, keep: float, ice: float, scale: float) -> Levels:
    """Blend with a random crop of one of five pictures of frost."""
    pictures = textures(scale, *x.shape[2:])
    frozen = crop(pictures, rng, *x.shape[2:]).astype(x.dtype)
    return keep * x + ice * (luma(frozen) if x.shape[1] == 1 else frozen)


def fog(x: Levels, rng: Streams, thickness: float, decay: float) -> Levels:
    """Add white fractal fog and rescale the image to its old maximum."""
    bright = x.max((1, 2, 3), keepdims=True)
    height, width = x.shape[2:]
    banks = plasma(rng, height, width, decay)[:, None].astype(x.dtype)
    return (x + 255 * thickness * banks) * (bright / (bright + 255 * thickness))


def brightness(x: Levels, rng: Streams, more: float) -> Levels:
    """Add ``more`` to the HSV value, clamped at white; hue and saturation stay."""
    x = x / 255.0
    v = x.max(1, keepdims=True)
    brighter = np.clip(v + more, 0, 1)
    return (brighter - (v - x) * ratio(brighter, v)) * 255


def frost_source() -> str:
    """Source of the frost pictures, for records: "published photographs" or "generated texture"."""
    return "published photographs" if _found(data_root()) else "generated texture"


def _found(root: Path) -> bool:
    return all((root / "frost" / name).is_file() for name in PHOTOGRAPHS)


def crop(
    pictures: tuple[Picture, ...], rng: Streams, height: int, width: int
) -> UInt8[np.ndarray, "N 3 {height} {width}"]:
    """A random crop of one of the pictures for each image."""
    which = rng.integers(len(pictures), lane=0)
    out = np.empty((len(rng), 3, height, width), np.uint8)
    limits = np.array([(p.shape[1] - height, p.shape[2] - width) for p in pictures])[which]
    top, left = rng.integers(limits[:, 0], lane=1), rng.integers(limits[:, 1], lane=2)
    for number, picture in enumerate(pictures):
        mine = which == number
        places = sliding_window_view(picture, (height, width), axis=(1, 2))
        out[mine] = places[:, top[mine], left[mine]].swapaxes(0, 1)
    return out


def textures(scale: float, height: int, width: int) -> tuple[Picture, ...]:
    """Five pictures larger than ``height x width``, at ``scale`` of their published size."""
    return _textures(data_root(), _found(data_root()), scale, height, width)


@lru_cache(maxsize=4)
def _textures(root: Path, published: bool, scale: float, height: int, width: int) -> tuple[Picture, ...]:
    if published:
        pictures = [np.asarray(Image.open(root / "frost" / name).convert("RGB")) for name in PHOTOGRAPHS]
    else:
        pictures = [ice_texture(number) for number in range(len(PHOTOGRAPHS))]
    return tuple(_fit(_shrink(picture, scale), height, width) for picture in pictures)


def _shrink(picture: UInt8[np.ndarray, "H W 3"], scale: float) -> UInt8[np.ndarray, "h w 3"]:
    """Take every 1/scale-th pixel, from the centre of its cell: equal to bilinear resizing for 1/5."""
    stride = round(1 / scale)
    height, width = (round(side * scale) for side in picture.shape[:2])
    return picture[stride // 2 :: stride, stride // 2 :: stride][:height, :width]


def _fit(picture: UInt8[np.ndarray, "h w 3"], height: int, width: int) -> Picture:
    """Enlarge a picture (3, H, W) that is too small for a random crop."""
    factor = max((height + 1) / picture.shape[0], (width + 1) / picture.shape[1])
    if factor > 1:
        image = Image.fromarray(picture)
        size = (int(image.width * factor * 1.1) + 1, int(image.height * factor * 1.1) + 1)
        picture = np.asarray(image.resize(size, Image.Resampling.BILINEAR))
    return np.ascontiguousarray(picture.transpose(2, 0, 1))


@cache
def ice_texture(number: int) -> UInt8[np.ndarray, "H W 3"]:
    """Generated texture of ice, used if photograph ``number`` is missing.

    It has the mean colour and the contrast of the photograph, so that the corruption is about as strong;
    it is another texture all the same, and records say so.
    """
    rng = sample_streams(0, "ferns of ice", number + 1, [0])
    drawn = np.asarray(_drawn(_ferns(rng)), np.float32) + 20 * rng.normal(SIZE, lane=1)[0]
    glow = gaussian_filter(drawn, 0.6) + 2 * gaussian_filter(drawn, 12)
    *tone, deviation = TONES[number]
    relief = (glow - glow.mean()) / glow.std() * deviation
    return np.clip(relief[..., None] + np.array(tone), 0, 255).astype(np.uint8)


def _ferns(rng: Streams) -> Float[np.ndarray, "segments 5"]:
    """Line segments (x, y, x, y, shade) of ice ferns: stems, and shorter and shorter twigs at sixty degrees."""
    x, y, turn, size, shade = rng.uniform((5, FERNS))[0]
    x, y, turn, size = x * SIZE[1], y * SIZE[0], turn * 2 * np.pi, 40 + 140 * size**2
    shade = 70 + 185 * shade
    stems = _segments(x, y, turn, size, shade)
    along = np.linspace(0.05, 0.95, TWIGS)[:, None]
    start = x + along * size * np.cos(turn), y + along * size * np.sin(turn)
    length = 0.45 * size * (1 - along)
    twigs = [_segments(*start, turn + side * np.pi / 3, length, 0.8 * shade) for side in (-1, 1)]
    return np.concatenate([stems, *twigs])


def _segments(*parts: Float[np.ndarray, "..."]) -> Float[np.ndarray, "segments 5"]:
    x, y, turn, length, shade = (part.ravel() for part in np.broadcast_arrays(*parts))
    return np.stack([x, y, x + length * np.cos(turn), y + length * np.sin(turn), shade], 1)


def _drawn(segments: Float[np.ndarray, "segments 5"]) -> Image.Image:
    """Draw segments, bright ones over dark ones."""
    image = Image.new("L", SIZE[::-1])
    pen = ImageDraw.Draw(image)
    for *line, shade in segments[segments[:, 4].argsort()]:
        pen.line(line, fill=int(shade))
    return image


def plasma(rng: Streams, height: int, width: int, decay: float) -> Layer:
    """A fractal height map by the diamond-square algorithm, one per image.

    Heights in [0, 1] that wrap round; each halving of the scale divides the wibble by ``decay``.
    The wibble is squared, as published: its spread falls by ``decay`` squared from scale to scale.
    """
    size = 1 << (max(height, width) - 1).bit_length()
    draws = rng.sixteen((size * size,)).T  # (draws, N): every step below is contiguous over images
    uniform = draws.astype(np.float32) * np.float32(2 / 65536) - np.float32(1 - 1 / 65536)
    heights = np.zeros((size, size, len(rng)), np.float32)
    used, wibble, step = 0, 100.0, size
    while step >= 2:
        used = _refine(heights, step, uniform, used, wibble**2)
        step, wibble = step // 2, wibble / decay
    heights -= heights.min((0, 1))
    heights /= heights.max((0, 1))
    return np.moveaxis(heights[:height, :width], 2, 0)


def _refine(
    m: Float32[np.ndarray, "S S N"], step: int, uniform: Float32[np.ndarray, "draws N"], used: int, amplitude: float
) -> int:
    """Fill the centres of squares, then of diamonds: the mean of four corners plus noise."""
    half = step // 2
    corner, middle = m[::step, ::step], m[half::step, half::step]
    above, left = m[::step, half::step], m[half::step, ::step]
    count = corner.shape[0] ** 2
    wibble = [uniform[used + i * count : used + (i + 1) * count].reshape(corner.shape) * amplitude for i in range(3)]
    down = corner + np.roll(corner, -1, 0)
    middle[:] = (down + np.roll(down, -1, 1)) / 4 + wibble[0]
    above[:] = (middle + np.roll(middle, 1, 0) + corner + np.roll(corner, -1, 1)) / 4 + wibble[1]
    left[:] = (middle + np.roll(middle, 1, 1) + corner + np.roll(corner, -1, 0)) / 4 + wibble[2]
    return used + 3 * count
