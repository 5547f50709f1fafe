"""Batched image operations do to 8-bit images what Pillow does to each."""

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps

from meada.images import tones as tones
from meada.images import warps as warps

AFFINE, BILINEAR, NEAREST = (
    Image.Transform.AFFINE, Image.Resampling.BILINEAR, Image.Resampling.NEAREST,
)  # fmt: skip


def photographs(n: int = 12, side: int = 32) -> torch.Tensor:
    """Smooth colours with noise and a few flat, dark or two-level ones among them."""
    rng = np.random.default_rng(3)
    ramp = np.linspace(0, 1, side)
    images = np.empty((n, side, side, 3))
    for image in images:
        low, high = np.sort(rng.uniform(0, 255, (2, 3)), axis=0)
        image[:] = low + (high - low) * (ramp[:, None, None] + ramp[None, :, None]) / 2
    images += rng.normal(0, 12, images.shape)
    images[0] = 77
    images[1] = rng.integers(0, 2, images[1].shape) * 200
    images[2] /= 20
    return torch.from_numpy(images.clip(0, 255).round().transpose(0, 3, 1, 2).copy())


def with_pillow(v, operation, strengths=None):
    images = v.numpy().astype(np.uint8).transpose(0, 2, 3, 1)
    strengths = [None] * len(v) if strengths is None else strengths.tolist()
    done = []
    for pixels, strength in zip(images, strengths, strict=True):
        image = Image.fromarray(pixels)
        done.append(np.asarray(operation(image, *([] if strength is None else [strength]))))
    return torch.from_numpy(np.stack(done).transpose(0, 3, 1, 2).astype(float))


def spread(low: float, high: float, n: int = 12) -> torch.Tensor:
    return torch.linspace(low, high, n)


def agree(ours: torch.Tensor, pillows: torch.Tensor, share: float = 0.0, off: int = 0) -> None:
    """Equal, but for a ``share`` of the pixels that are ``off`` by a level."""
    gap = (ours - pillows).abs()
    assert gap.max() <= off and (gap > 0).double().mean() <= share


@pytest.mark.parametrize(
    "ours, pillows",
    [
        (tones.invert, ImageOps.invert),
        (tones.autocontrast, ImageOps.autocontrast),
        (tones.equalise, ImageOps.equalize),
    ],
)
def test_operations_without_a_strength(ours, pillows):
    agree(ours(photographs()), with_pillow(photographs(), pillows))


@pytest.mark.parametrize(
    "ours, pillows, strengths",
    [
        (tones.solarise, ImageOps.solarize, spread(0, 256).round()),
        (tones.posterise, lambda x, bits: ImageOps.posterize(x, int(bits)), spread(1, 8).round()),
    ],
)
def test_operations_on_single_levels(ours, pillows, strengths):
    agree(ours(photographs(), strengths), with_pillow(photographs(), pillows, strengths))


@pytest.mark.parametrize(
    "ours, enhance",
    [
        (tones.colour, ImageEnhance.Color),
        (tones.contrast, ImageEnhance.Contrast),
        (tones.brightness, ImageEnhance.Brightness),
        (tones.sharpness, ImageEnhance.Sharpness),
    ],
)
def test_blends_from_nothing_to_twice(ours, enhance):
    pillows = lambda image, factor: enhance(image).enhance(factor)
    strengths = spread(0.1, 1.9)
    # Pillow blends in single precision: a value a rounding below a whole number loses a level
    agree(ours(photographs(), strengths), with_pillow(photographs(), pillows, strengths), 0.01, off=1)


def transform(entries, resample):
    return lambda image, k: image.transform(image.size, AFFINE, entries(k), resample=resample)


WARPS = [
    (warps.shear_x, lambda k: (1, k, 0, 0, 1, 0), spread(-0.3, 0.3)),
    (warps.shear_y, lambda k: (1, 0, 0, k, 1, 0), spread(-0.3, 0.3)),
    (warps.translate_x, lambda k: (1, 0, k, 0, 1, 0), spread(-14, 14).round()),
    (warps.translate_y, lambda k: (1, 0, 0, 0, 1, k), spread(-14.4, 14.4)),
]


@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("ours, entries, strengths", WARPS)
def test_shears_and_shifts(ours, entries, strengths, smooth):
    pillows = transform(entries, BILINEAR if smooth else NEAREST)
    agree(
        ours(photographs(), strengths, smooth=smooth),
        with_pillow(photographs(), pillows, strengths), 0.002, off=1 if smooth else 0,
    )  # fmt: skip


@pytest.mark.parametrize("smooth", [False, True])
def test_turns(smooth):
    pillows = lambda image, k: image.rotate(k, resample=BILINEAR if smooth else NEAREST)
    strengths = spread(-33, 33)
    ours = warps.rotate(photographs(), strengths, smooth=smooth)
    theirs = with_pillow(photographs(), pillows, strengths)
    # nearest: Pillow steps in 16-bit fractions, so a few pixels on an edge fall to a neighbour
    different = ((ours - theirs).abs() > 1).any(1).double().mean()
    assert different <= 0.005


def test_a_strength_belongs_to_its_image_alone():
    v, strengths = photographs(), spread(-30, 30)
    together = warps.rotate(v, strengths, smooth=True)
    for i in (0, 5, 11):
        alone = warps.rotate(v[i : i + 1], strengths[i : i + 1], smooth=True)
        assert torch.equal(alone[0], together[i])


def test_grey_images_have_tones_too():
    v = photographs()[:, :1]
    for operation in (tones.equalise, tones.autocontrast):
        assert operation(v).shape == v.shape
    assert torch.equal(tones.colour(v, spread(0, 2)), v)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sharpness_and_grey_are_exact(dtype):
    """Short cuts through whole numbers against the convolution and the weighted sum that they stand for."""
    v = torch.randint(256, (40, 3, 9, 11), generator=torch.Generator().manual_seed(0)).to(dtype)
    kernel = torch.tensor([[1.0, 1, 1], [1, 5, 1], [1, 1, 1]], dtype=torch.float64).expand(3, 1, 3, 3) / 13
    want = (torch.nn.functional.conv2d(v.double(), kernel, groups=3) + 0.5).floor()
    assert tones.sharpness(v, torch.zeros(40))[..., 1:-1, 1:-1].double().equal(want)
    weights = torch.tensor(tones.GREY, dtype=torch.float64).view(3, 1, 1)
    want = (((weights * v.double()).sum(1, keepdim=True) + 32768) / 65536).floor()
    assert tones.grey(v).dtype == dtype and tones.grey(v).double().equal(want)
