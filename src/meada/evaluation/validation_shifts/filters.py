"""Validation shifts by local operations: 3 x 3 filters, edge maps, blurs and lossy compression."""

import math

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, conv2d, interpolate, pad

from meada.evaluation.validation_shifts.tone_geometry import luma, normal, places, read, uniform
from meada.streams import Streams
from meada.types import Images

SOBEL = ((-1.0, 0.0, 1.0), (-2.0, 0.0, 2.0), (-1.0, 0.0, 1.0))
EMBOSS = ((-4.0, -2.0, 0.0), (-2.0, 1.0, 2.0), (0.0, 2.0, 4.0))


def sharpen(x: Images, rng: Streams) -> Images:
    """Unsharp mask: three to five times the difference from the local mean."""
    return x + uniform(rng, x, 2.0, 4.0) * (x - smooth(x, _reach(x)))


def emboss(x: Images, rng: Streams) -> Images:
    """Emboss with light from the upper left."""
    return correlate(x, torch.tensor(EMBOSS).to(x).expand(len(x), 3, 3), _reach(x))


def random_filter(x: Images, rng: Streams) -> Images:
    """A 3 x 3 kernel of normal numbers, shifted to sum to 1."""
    kernel = 0.7 * normal(rng, x, 3, 3)
    return correlate(x, kernel - kernel.mean((1, 2), keepdim=True) + 1 / 9, _reach(x))


def contour(x: Images, rng: Streams) -> Images:
    """Sobel gradient magnitude of the luma, scaled so that its maximum is white."""
    grey, kernel = luma(x), torch.tensor(SOBEL).to(x).expand(len(x), 3, 3)
    slope = torch.hypot(correlate(grey, kernel), correlate(grey, kernel.mT))
    return (slope / slope.amax((2, 3), keepdim=True).clamp(min=1e-6)).expand_as(x)


def sketch(x: Images, rng: Streams) -> Images:
    """The inverted edge map: dark lines on white."""
    return 1 - contour(x, rng)


def etching(x: Images, rng: Streams) -> Images:
    """Adaptive threshold: black where a pixel is darker than its surroundings, white elsewhere."""
    grey = luma(x)
    darker = (smooth(grey, max(x.shape[2] // 8, 2)) - grey).clamp(min=0)
    return (1 - darker / darker.amax((2, 3), keepdim=True).clamp(min=1e-6)).square().expand_as(x)


def median(x: Images, rng: Streams) -> Images:
    """3 x 3 median filter of the image downsampled to about 32 x 32."""
    step = max(min(x.shape[2:]) // 32, 1)
    small = avg_pool2d(x, step) if step > 1 else x
    height, width = small.shape[2:]
    around = pad(small, (1, 1, 1, 1), mode="replicate")
    nine = [around[:, :, i : i + height, j : j + width] for i in range(3) for j in range(3)]
    middle = torch.stack(nine).median(0).values
    return interpolate(middle, x.shape[2:], mode="bilinear", align_corners=False) if step > 1 else middle


def fringes(x: Images, rng: Streams) -> Images:
    """Chromatic aberration: channels shifted by 1/16 of the side (a single channel: the mean of three shifts)."""
    angle = uniform(rng, x, 0.0, 2 * math.pi)
    column, row = places(x)
    moved = [read(x, column + k * angle.cos() / 8, row + k * angle.sin() / 8, beyond="border") for k in (-1, 0, 1)]
    if x.shape[1] != 3:
        return torch.stack(moved).mean(0)
    return torch.stack([one[:, channel] for channel, one in enumerate(moved)], 1)


def spin(x: Images, rng: Streams) -> Images:
    """Rotational blur: mean of seven rotations within 15 to 25 degrees either way."""
    most = uniform(rng, x, math.pi / 12, math.pi / 7.2)
    column, row = places(x)
    turned = [
        read(x, a.cos() * column - a.sin() * row, a.sin() * column + a.cos() * row, beyond="border")
        for a in (most * k / 3 for k in range(-3, 4))
    ]
    return torch.stack(turned).mean(0)


def smooth(x: Images, radius: int = 1) -> Images:
    """Box filter of side 2 radius + 1; the border is replicated."""
    return avg_pool2d(pad(x, (radius,) * 4, mode="replicate"), 2 * radius + 1, stride=1)


def correlate(x: Images, kernels: Tensor, reach: int = 1) -> Images:
    """Filter each image with its own 3 x 3 kernel per channel, dilated by ``reach``; the border is replicated."""
    b, c, h, w = x.shape
    around = pad(x, (reach,) * 4, mode="replicate").view(1, b * c, h + 2 * reach, w + 2 * reach)
    return conv2d(around, kernels.repeat_interleave(c, 0)[:, None], groups=b * c, dilation=reach).view_as(x)


def _reach(x: Images) -> int:
    """Dilation of filters: 1 pixel below a side of 128, more above, so that they visibly change a photograph."""
    return max(min(x.shape[2:]) // 64, 1)


BLOCK = 16  # pixels; JPEG's are 8
DITHER = ((0, 8, 2, 10), (12, 4, 14, 6), (3, 11, 1, 9), (15, 7, 13, 5))  # Bayer's 4 x 4


def few_cosines(x: Images, rng: Streams) -> Images:
    """Coarse quantisation of each block's 16 x 16 DCT coefficients, with one step size."""
    basis, blocks = _cosines(BLOCK).to(x), _in_blocks(x, BLOCK)
    step = uniform(rng, x, 0.8, 1.2, 1, 1, 1, 1, 1)
    coded = (basis @ blocks @ basis.T / step).round() * step
    return _whole(basis.T @ coded @ basis, x)


def few_wavelets(x: Images, rng: Streams) -> Images:
    """Keep the largest 6 to 10 per cent of the coefficients of a three-level Haar transform."""
    padded = _padded(x, 8)
    coded, details = padded, []
    for _ in range(3):
        coded, detail = _haar(coded)
        details.append(detail)
    size = torch.cat([detail.abs().flatten(1) for detail in details], 1)
    part = uniform(rng, x, 0.06, 0.1, 1)
    rank = ((1 - part) * (size.shape[1] - 1)).long()
    least = size.sort(1).values.gather(1, rank).view(-1, 1, 1, 1, 1)
    for detail in reversed(details):
        coded = _unhaar(coded, torch.where(detail.abs() >= least, detail, 0))
    return coded[:, :, : x.shape[2], : x.shape[3]]


def few_levels(x: Images, rng: Streams) -> Images:
    """Two or three levels per channel, dithered in a fixed pattern, as old picture files are."""
    height, width = x.shape[2:]
    pattern = (torch.tensor(DITHER).to(x) + 0.5) / 16
    threshold = pattern.repeat(-(-height // 4), -(-width // 4))[:height, :width]
    steps = uniform(rng, x, 1.0, 3.0).floor()
    return (x * steps + threshold).floor().clamp(max=steps) / steps


def _cosines(n: int) -> Tensor:
    """Orthonormal DCT matrix, one frequency per row."""
    k = torch.arange(n, dtype=torch.float64)
    basis = torch.cos(math.pi / n * k[:, None] * (k + 0.5)) * math.sqrt(2 / n)
    basis[0] /= math.sqrt(2)
    return basis


def _padded(x: Images, block: int) -> Tensor:
    height, width = x.shape[2:]
    return pad(x, (0, -width % block, 0, -height % block), mode="replicate")


def _in_blocks(x: Images, block: int) -> Tensor:
    """Split images into blocks: (B, C, rows, columns, block, block)."""
    return _padded(x, block).unfold(2, block, block).unfold(3, block, block)


def _whole(blocks: Tensor, x: Images) -> Images:
    b, c, rows, columns, side, _ = blocks.shape
    return blocks.transpose(3, 4).reshape(b, c, rows * side, columns * side)[:, :, : x.shape[2], : x.shape[3]]


def _haar(x: Images) -> tuple[Tensor, Tensor]:
    """Half-sums, and the three kinds of half-differences (B, 3, C, H / 2, W / 2), of 2 x 2 pixels."""
    a, b, c, d = x[..., ::2, ::2], x[..., ::2, 1::2], x[..., 1::2, ::2], x[..., 1::2, 1::2]
    return (a + b + c + d) / 2, torch.stack([a - b + c - d, a + b - c - d, a - b - c + d], 1) / 2


def _unhaar(low: Tensor, details: Tensor) -> Tensor:
    across, down, both = details.unbind(1)
    rows = [
        torch.stack([low + s * down + across + s * both, low + s * down - across - s * both], -1).flatten(-2)
        for s in (1, -1)
    ]
    return torch.stack(rows, -2).flatten(-3, -2) / 2
