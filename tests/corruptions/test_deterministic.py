"""Corruptions without chance, each against a computation of another make, image by image."""

import colorsys
from collections.abc import Callable
from io import BytesIO
from math import ceil

import numpy as np
import pytest
from PIL import Image
from scipy import ndimage

from meada.corruptions import SEVERITIES, corrupt
from meada.corruptions.constants import TABLES

Image8 = np.ndarray  # (H, W, C) in 0..255, as usual libraries have it


def defocus_blur(x: Image8, radius: float, alias: float) -> Image8:
    half, ends = (8, 1) if radius <= 8 else (int(radius), 2)
    circle = np.zeros((2 * half + 1, 2 * half + 1))
    for i in range(-half, half + 1):
        for j in range(-half, half + 1):
            circle[i + half, j + half] = i * i + j * j <= radius**2
    g = np.array([np.exp(-k * k / (2 * alias**2)) for k in range(-ends, ends + 1)])
    kernel = circle / circle.sum()
    for axis in (0, 1):
        kernel = ndimage.correlate1d(kernel, g / g.sum(), axis=axis, mode="mirror")
    return ndimage.correlate(x, kernel[..., None], mode="mirror")


def zoom_blur(x: Image8, stop: float, step: float) -> Image8:
    def enlarged(factor: float) -> Image8:
        size = [ceil(side / factor) for side in x.shape[:2]]
        top, left = ((side - kept) // 2 for side, kept in zip(x.shape, size, strict=False))
        middle = x[top : top + size[0], left : left + size[1]]
        large = ndimage.zoom(middle, (factor, factor, 1), order=1)
        top, left = ((new - old) // 2 for new, old in zip(large.shape, x.shape[:2], strict=False))
        return large[top : top + x.shape[0], left : left + x.shape[1]]

    factors = np.arange(1, stop, step)
    return (x + sum(enlarged(factor) for factor in factors)) / (len(factors) + 1)


def gaussian_blur(x: Image8, sigma: float) -> Image8:
    return ndimage.gaussian_filter(x, (sigma, sigma, 0), mode="nearest", truncate=4)


def contrast(x: Image8, share: float) -> Image8:
    means = [x[..., c].sum() / x[..., c].size for c in range(x.shape[2])]
    return np.stack([means[c] + share * (x[..., c] - means[c]) for c in range(x.shape[2])], -1)


def by_hsv(change: Callable[..., tuple[float, float, float]]) -> Callable[..., Image8]:
    """Python's own colour conversion, one pixel at a time."""

    def changed(x: Image8, *numbers: float) -> Image8:
        y = np.empty_like(x)
        for place in np.ndindex(*x.shape[:2]):
            h, s, v = colorsys.rgb_to_hsv(*(np.resize(x[place], 3) / 255))
            y[place] = np.multiply(colorsys.hsv_to_rgb(*change(h, s, v, *numbers)), 255)[: x.shape[2]]
        return y

    return changed


def pixelate(x: Image8, share: float) -> Image8:
    height, width = x.shape[:2]
    small = _image(x).resize((int(width * share), int(height * share)), Image.Resampling.BOX)
    return _array(small.resize((width, height), Image.Resampling.BOX))


def jpeg_compression(x: Image8, quality: float) -> Image8:
    file = BytesIO()
    _image(x).save(file, format="JPEG", quality=int(quality))
    return _array(Image.open(BytesIO(file.getvalue())))


def _image(x: Image8) -> Image.Image:
    return Image.fromarray(x.astype(np.uint8).squeeze(2) if x.shape[2] == 1 else x.astype(np.uint8))


def _array(image: Image.Image) -> Image8:
    pixels = np.asarray(image).astype(float)
    return pixels[..., None] if pixels.ndim == 2 else pixels


INDEPENDENT = {  # and the share of values that must agree to the bit; the rest differ by a level
    "defocus_blur": (defocus_blur, 0.94),  # sums of a few equal weights are often whole levels
    "zoom_blur": (zoom_blur, 0.99),
    "gaussian_blur": (gaussian_blur, 0.99),
    "contrast": (contrast, 0.99),
    "brightness": (by_hsv(lambda h, s, v, more: (h, s, min(v + more, 1))), 0.85),
    "saturate": (by_hsv(lambda h, s, v, a, b: (h, min(max(s * a + b, 0), 1), v)), 0.7),
    "pixelate": (pixelate, 1),
    "jpeg_compression": (jpeg_compression, 1),
}


@pytest.fixture(params=INDEPENDENT)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("shape", [(3, 32, 32), (3, 45, 33), (1, 32, 32), (3, 100, 88)])
def test_agrees_with_another_computation(name, table, shape, photographs) -> None:
    if name == "saturate" and shape[0] == 1:
        pytest.skip("a grey image has no saturation: see test_digital.py")
    if name in ("brightness", "saturate"):
        shape = (shape[0], 28, 29)  # pixel by pixel in Python, and no pixel knows of another
    images = photographs(1 if max(shape) > 64 else 2, *shape[1:])[:, : shape[0]]
    other, agreeing = INDEPENDENT[name]
    for severity in SEVERITIES:
        ours = corrupt(images, name, severity, constants=table).astype(int)
        numbers = TABLES[table][name][severity - 1]
        for image, result in zip(images, ours, strict=True):
            theirs = other(image.transpose(1, 2, 0).astype(float), *numbers).transpose(2, 0, 1)
            difference = np.abs(result - np.floor(np.clip(theirs, 0, 255)))
            assert difference.max() <= 1
            assert (difference == 0).mean() >= agreeing, severity


@pytest.mark.parametrize("table", TABLES)
def test_agrees_in_floats(name, table, photographs) -> None:
    """Without the truncation: to rounding, or for 8-bit steps to the bit."""
    images = photographs(1)
    other, _ = INDEPENDENT[name]
    for severity in SEVERITIES:
        ours = corrupt(images / 255, name, severity, constants=table)[0].transpose(1, 2, 0)
        numbers = TABLES[table][name][severity - 1]
        theirs = np.clip(other(images[0].transpose(1, 2, 0).astype(float), *numbers), 0, 255) / 255
        np.testing.assert_allclose(ours, theirs, atol=2e-9)


@pytest.mark.parametrize("size", [28, 31, 224, 512])
@pytest.mark.parametrize("share", [0.95, 0.65, 0.3, 0.11, 0.077])
def test_box_filter_is_pillows_to_the_bit(size, share) -> None:
    """Also with cells of six pixels and more, where means can be ties."""
    from meada.corruptions.digital import pixelate as ours
    from meada.streams import sample_streams

    x = np.random.default_rng(size).integers(0, 256, (size, size + 3, 3)).astype(float)
    batch = x.transpose(2, 0, 1)[None].astype(np.float32)
    result = ours(batch, sample_streams(0, "pixelate", 1, [0]), share)[0].transpose(1, 2, 0)
    assert (result == pixelate(x, share)).all()


def test_brightness_by_hand() -> None:
    """(200, 100, 0) + 0.1: value 200 -> 225.5, the others in proportion."""
    images = np.zeros((1, 3, 32, 32), np.uint8)
    images[0] = np.array([200, 100, 0])[:, None, None]
    assert corrupt(images, "brightness", 2)[0, :, 5, 5].tolist() == [225, 112, 0]


def test_contrast_by_hand() -> None:
    """Half black, half 200: the mean is 100, and three quarters of 100 remain."""
    images = np.zeros((1, 1, 32, 32), np.uint8)
    images[..., 16:] = 200
    assert set(corrupt(images, "contrast", 1).ravel().tolist()) == {25, 175}
