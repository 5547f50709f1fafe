"""Validation shifts that save bits: few cosines per block, few wavelets, few dithered levels."""

import math

import torch
from torch import Tensor
from torch.nn.functional import pad

from meada.evaluation.validation_shifts.random_numbers import uniform
from meada.streams import Streams
from meada.types import Images

BLOCK = 16  # pixels; JPEG's are 8
DITHER = ((0, 8, 2, 10), (12, 4, 14, 6), (3, 11, 1, 9), (15, 7, 13, 5))  # Bayer's 4 x 4


def few_cosines(x: Images, rng: Streams) -> Images:
    """Each block's 16 x 16 cosines rounded so coarsely that few are left; one step for all of them."""
    basis, blocks = _cosines(BLOCK).to(x), _in_blocks(x, BLOCK)
    step = uniform(rng, x, 0.8, 1.2, 1, 1, 1, 1, 1)
    coded = (basis @ blocks @ basis.T / step).round() * step
    return _whole(basis.T @ coded @ basis, x)


def few_wavelets(x: Images, rng: Streams) -> Images:
    """Of three levels of Haar wavelets the 6 to 10 per cent that are largest."""
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
    """The orthogonal cosine transform, a frequency per row."""
    k = torch.arange(n, dtype=torch.float64)
    basis = torch.cos(math.pi / n * k[:, None] * (k + 0.5)) * math.sqrt(2 / n)
    basis[0] /= math.sqrt(2)
    return basis


def _padded(x: Images, block: int) -> Tensor:
    height, width = x.shape[2:]
    return pad(x, (0, -width % block, 0, -height % block), mode="replicate")


def _in_blocks(x: Images, block: int) -> Tensor:
    """(B, C, rows, columns, block, block)."""
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
