"""Tone and colour operations on batches of 8-bit images, equal to Pillow's.

``v`` holds levels: integers from 0 to 255 stored as floats; a strength is one number per image.
"""

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from meada.images.constants import constant
from meada.types import PerSample

Levels = Float[Tensor, "B C H W"]  # whole numbers from 0 to 255
Tables = Shaped[Tensor, "B #C 256"]  # a new level for each old one, the same for all channels or one for each

GREY = (19595, 38470, 7471)  # of 65,536: ITU-R 601-2 luma, as Pillow's convert("L") has it


def invert(v: Levels) -> Levels:
    return 255 - v


def solarise(v: Levels, threshold: PerSample) -> Levels:
    """Invert levels from ``threshold`` up.

    >>> solarise(torch.tensor([[[[10.0, 200.0]]]]), torch.tensor([128.0])).flatten().tolist()
    [10.0, 55.0]
    """
    return torch.where(v < _wide(threshold, v), v, 255 - v)


def posterise(v: Levels, bits: PerSample) -> Levels:
    """Keep the ``bits`` highest bits.

    >>> posterise(torch.tensor([[[[255.0, 17.0]]]]), torch.tensor([4.0])).flatten().tolist()
    [240.0, 16.0]
    """
    return v - v % _wide(2 ** (8 - bits), v)


def autocontrast(v: Levels) -> Levels:
    """Stretch each channel so that its darkest level is 0 and its brightest 255."""
    return look_up(v, autocontrast_table(v))


def autocontrast_table(v: Levels) -> Tables:
    low, high = v.amin((2, 3)).double()[..., None], v.amax((2, 3)).double()[..., None]
    # In double precision and truncated, as Pillow: the same level falls on the same side.
    scale = torch.full_like(high, 255) / (high - low).clamp(min=1)  # 255 / x would be 255 * (1 / x)
    table = (every_level(v) * scale - low * scale).trunc().clamp(0, 255)
    return torch.where(high > low, table, every_level(v))


def equalise(v: Levels) -> Levels:
    """Histogram equalisation of each channel."""
    return look_up(v, equalise_table(v))


def equalise_table(v: Levels) -> Tables:
    n, c, h, w = v.shape
    rows = torch.arange(n * c, device=v.device).view(n, c, 1, 1) * 256
    count = torch.bincount((v.long() + rows).flatten(), minlength=n * c * 256).view(n, c, 256)
    brightest = v.amax((2, 3)).long()[..., None]
    step = (h * w - count.gather(2, brightest)) // 255
    below = count.cumsum(2) - count
    table = ((step // 2 + below) // step.clamp(min=1)).clamp(max=255)
    return torch.where(step > 0, table, every_level(v).long())


def colour(v: Levels, factor: PerSample) -> Levels:
    """Saturation: 0 is grey, 1 the image, above 1 more colourful; grey images do not change."""
    return v if v.shape[1] == 1 else _blend(grey(v).expand_as(v), v, factor)


def contrast(v: Levels, factor: PerSample) -> Levels:
    """Contrast: 0 is the image's mean grey everywhere, 1 the image."""
    return _toward_grey(v, v, factor)


def contrast_table(v: Levels, factor: PerSample) -> Tables:
    return _toward_grey(v, every_level(v).to(v.dtype).expand(len(v), 1, 1, 256), factor)[:, :, 0]


def _toward_grey(v: Levels, levels: Tensor, factor: PerSample) -> Tensor:
    """``levels`` blended with the mean grey of ``v``."""
    mean = (grey(v).double().mean((1, 2, 3)) + 0.5).floor()
    return _blend(_wide(mean, v).expand_as(levels), levels, factor)


def brightness(v: Levels, factor: PerSample) -> Levels:
    """Brightness: 0 is black, 1 the image.

    >>> brightness(torch.tensor([[[[100.0, 200.0]]]]), torch.tensor([1.5])).flatten().tolist()
    [150.0, 255.0]
    """
    return _blend(torch.zeros_like(v), v, factor)


def sharpness(v: Levels, factor: PerSample) -> Levels:
    """Sharpness: 0 is the smoothed image, 1 the image; the outermost pixels do not change."""
    smooth = v.clone()
    if min(v.shape[2:]) > 2:
        threes = v[..., :-2, :] + v[..., 1:-1, :] + v[..., 2:, :]
        nines = threes[..., :-2] + threes[..., 1:-1] + threes[..., 2:]
        smooth[..., 1:-1, 1:-1] = (nines + 4 * v[..., 1:-1, 1:-1]).div_(13).add_(0.5).floor_()
    return _blend(smooth, v, factor)


def grey(v: Levels) -> Float[Tensor, "B 1 H W"]:
    """One channel, (N, 1, H, W)."""
    if v.shape[1] == 1:
        return v
    # Exact in single precision too: the largest sum is 65,536 * 255 + 32,768, which is below 2^24.
    red, green, blue = (weight * v[:, i : i + 1].float() for i, weight in enumerate(GREY))
    return red.add_(green).add_(blue).add_(32768).div_(65536).floor_().to(v.dtype)


def _blend(a: Levels, b: Levels, factor: PerSample) -> Levels:
    """Interpolate from ``a`` (0) to ``b`` (1) and beyond; truncated as in Pillow."""
    return (b - a).mul_(_wide(factor, b)).add_(a).clamp_(0, 255).floor_()


def _wide(values: PerSample, like: Levels) -> Float[Tensor, "B 1 1 1"]:
    return values.to(like).view(-1, 1, 1, 1)


def every_level(v: Levels) -> Float[Tensor, "256"]:
    return _levels(v.device)


@constant
def _levels(device: torch.device) -> Tensor:
    return torch.arange(256, dtype=torch.float64, device=device)


def look_up(v: Levels, table: Tensor) -> Levels:
    """``table`` (N, C, 256) has a new level for each old one."""
    n, c, h, w = v.shape
    return table.to(v.dtype).expand(n, c, 256).gather(2, v.long().flatten(2)).view(n, c, h, w)
