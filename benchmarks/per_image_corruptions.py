"""Reference versions of the fifteen corruptions: one 8-bit image (H, W, 3) at a time.

NumPy, SciPy, Pillow and Matplotlib's colour conversion; what to compare the batched ones with.
"""

from io import BytesIO
from math import ceil, cos, radians, sin

import numpy as np
from matplotlib.colors import hsv_to_rgb, rgb_to_hsv
from PIL import Image
from scipy import ndimage

from meada.corruptions.blur import disk
from meada.corruptions.weather import textures

RNG = np.random.default_rng(0)
Array = np.ndarray


def gaussian_noise(x: Array, deviation: float) -> Array:
    x = x / 255.0
    return np.clip(x + RNG.normal(size=x.shape, scale=deviation), 0, 1) * 255


def shot_noise(x: Array, photons: float) -> Array:
    return np.clip(RNG.poisson(x / 255.0 * photons) / photons, 0, 1) * 255


def impulse_noise(x: Array, amount: float) -> Array:
    y = x / 255.0
    hit, salt = RNG.random(x.shape) <= amount, RNG.random(x.shape) <= 0.5
    y[hit & salt], y[hit & ~salt] = 1, 0
    return y * 255


def defocus_blur(x: Array, radius: float, alias: float) -> Array:
    x, kernel = x / 255.0, disk(radius, alias)
    channels = [ndimage.correlate(x[..., c], kernel, mode="mirror") for c in range(3)]
    return np.clip(np.stack(channels, -1), 0, 1) * 255


def glass_blur(x: Array, sigma: float, reach: float, rounds: float) -> Array:
    smooth = lambda y: ndimage.gaussian_filter(y, (sigma, sigma, 0), mode="nearest")
    y, d = (smooth(x / 255.0) * 255).astype(np.uint8), int(reach)
    for _ in range(int(rounds)):
        for h in range(x.shape[0] - d, d, -1):
            for w in range(x.shape[1] - d, d, -1):
                right, down = RNG.integers(-d, d, size=2)
                y[h, w] = y[h + down, w + right]
    return np.clip(smooth(y / 255.0), 0, 1) * 255


def motion_blur(x: Array, radius: float, sigma: float) -> Array:
    return _moved(x, radius, sigma, RNG.uniform(-45, 45))


def zoom_blur(x: Array, stop: float, step: float) -> Array:
    x = (x / 255.0).astype(np.float32)
    factors = np.arange(1, stop, step)
    return np.clip((x + sum(_zoomed(x, f) for f in factors)) / (len(factors) + 1), 0, 1) * 255


def snow(
    x: Array,
    mean: float,
    deviation: float,
    zoom: float,
    threshold: float,
    radius: float,
    sigma: float,
    keep: float,
) -> Array:
    x = x.astype(np.float32) / 255
    layer = _zoomed(RNG.normal(size=x.shape[:2], loc=mean, scale=deviation)[..., None], zoom)
    layer[layer < threshold] = 0
    layer = (np.clip(layer, 0, 1) * 255).astype(np.uint8)
    layer = _moved(layer, radius, sigma, RNG.uniform(-135, -45)) / 255.0
    grey = (x @ np.array([0.299, 0.587, 0.114], np.float32))[..., None]
    x = keep * x + (1 - keep) * np.maximum(x, grey * 1.5 + 0.5)
    return np.clip(x + layer + np.rot90(layer, k=2), 0, 1) * 255


def frost(x: Array, keep: float, ice: float, scale: float) -> Array:
    height, width = x.shape[:2]
    picture = textures(scale, height, width)[RNG.integers(5)]
    top = RNG.integers(0, picture.shape[1] - height)
    left = RNG.integers(0, picture.shape[2] - width)
    piece = picture[:, top : top + height, left : left + width].transpose(1, 2, 0)
    return np.clip(keep * x + ice * piece, 0, 255)


def fog(x: Array, thickness: float, decay: float) -> Array:
    x = x / 255.0
    bright = x.max()
    banks = _plasma(1 << (max(x.shape[:2]) - 1).bit_length(), decay)
    x = x + thickness * banks[: x.shape[0], : x.shape[1], None]
    return np.clip(x * bright / (bright + thickness), 0, 1) * 255


def brightness(x: Array, more: float) -> Array:
    hsv = rgb_to_hsv(x / 255.0)
    hsv[..., 2] = np.clip(hsv[..., 2] + more, 0, 1)
    return np.clip(hsv_to_rgb(hsv), 0, 1) * 255


def contrast(x: Array, share: float) -> Array:
    x = x / 255.0
    mean = np.mean(x, axis=(0, 1), keepdims=True)
    return np.clip((x - mean) * share + mean, 0, 1) * 255


def elastic_transform(x: Array, alpha: float, sigma: float, affine: float) -> Array:
    x = x.astype(np.float32) / 255
    height, width = x.shape[:2]
    centre, side = np.array([width // 2, height // 2]), min(height, width) // 3
    points = centre + side * np.array([[1, 1], [1, -1], [-1, -1]])
    moved = points + RNG.uniform(-affine, affine, size=(3, 2))
    matrix = np.linalg.solve(np.c_[moved, np.ones(3)], points)
    rows, columns = np.indices((height, width))
    source = np.stack([columns, rows, np.ones_like(rows)], -1) @ matrix
    bent = _looked_up(x, source[..., 1], source[..., 0], "mirror")
    down, right = (
        ndimage.gaussian_filter(RNG.uniform(-1, 1, (height, width)), sigma, truncate=3) * alpha for _ in range(2)
    )
    return np.clip(_looked_up(bent, rows + down, columns + right, "reflect"), 0, 1) * 255


def pixelate(x: Array, share: float) -> Array:
    height, width = x.shape[:2]
    small = (int(width * share), int(height * share))
    image = Image.fromarray(x).resize(small, Image.Resampling.BOX)
    return np.asarray(image.resize((width, height), Image.Resampling.BOX))


def jpeg_compression(x: Array, quality: float) -> Array:
    file = BytesIO()
    Image.fromarray(x).save(file, "JPEG", quality=int(quality))
    return np.asarray(Image.open(file))


def _zoomed(x: Array, factor: float) -> Array:
    kept = [ceil(side / factor) for side in x.shape[:2]]
    top, left = ((side - k) // 2 for side, k in zip(x.shape, kept, strict=False))
    large = ndimage.zoom(x[top : top + kept[0], left : left + kept[1]], (factor, factor, 1), order=1)
    top, left = ((new - old) // 2 for new, old in zip(large.shape[:2], x.shape, strict=False))
    return large[top : top + x.shape[0], left : left + x.shape[1]]


def _moved(x: Array, radius: float, sigma: float, angle: float) -> Array:
    taps = np.arange(2 * ceil(radius) + 1)
    k = np.exp(-(taps**2) / (2 * sigma**2))
    rows, columns = np.arange(x.shape[0]), np.arange(x.shape[1])
    y = np.zeros(x.shape)
    for i, weight in zip(taps, k / k.sum(), strict=True):
        down, right = (ceil(i * f(radians(angle)) - 0.5) for f in (sin, cos))
        ahead = np.clip(rows + down, 0, rows[-1])[:, None], np.clip(columns + right, 0, columns[-1])
        y += weight * x[ahead]
    return np.rint(y)


def _plasma(size: int, decay: float) -> Array:
    m, step, wibble = np.zeros((size, size)), size, 100.0
    while step >= 2:
        half = step // 2
        noise = lambda a: a / 4 + wibble * RNG.uniform(-wibble, wibble, a.shape)  # noqa: B023
        corner = m[::step, ::step]
        below = corner + np.roll(corner, -1, 0)
        m[half::step, half::step] = noise(below + np.roll(below, -1, 1))
        middle = m[half::step, half::step]
        up = middle + np.roll(middle, 1, 0) + corner + np.roll(corner, -1, 1)
        m[::step, half::step] = noise(up)
        left = middle + np.roll(middle, 1, 1) + corner + np.roll(corner, -1, 0)
        m[half::step, ::step] = noise(left)
        step, wibble = half, wibble / decay
    m -= m.min()
    return m / m.max()


def _looked_up(x: Array, rows: Array, columns: Array, mode: str) -> Array:
    channels = (ndimage.map_coordinates(x[..., c], [rows, columns], order=1, mode=mode) for c in range(3))
    return np.stack(list(channels), -1)
