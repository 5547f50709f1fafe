"""Validation shifts that overlay the image: noise, waves and weather."""

import math

import torch
from torch import Tensor
from torch.fft import fftfreq, irfft2, rfft2, rfftfreq
from torch.nn.functional import interpolate

from meada.evaluation.validation_shifts.tone_geometry import normal, places, uniform
from meada.streams import Streams
from meada.types import Images

BANDS = 8  # of spatial frequency, from none to half a cycle per pixel


def speckle(x: Images, rng: Streams) -> Images:
    """Multiplicative noise with a standard deviation of half the pixel's value."""
    return x * (1 + 0.5 * normal(rng, x, *x.shape[1:]))


def grain(x: Images, rng: Streams) -> Images:
    """Noise at half the resolution, the same in all channels."""
    half = [max(n // 2, 1) for n in x.shape[2:]]
    return x + 0.3 * interpolate(normal(rng, x, 1, *half), x.shape[2:], mode="bilinear", align_corners=False)


def banding(x: Images, rng: Streams) -> Images:
    """A random offset for each row or each column."""
    rows, columns = normal(rng, x, 1, x.shape[2], 1), normal(rng, x, 1, 1, x.shape[3], lane=1)
    return x + 0.25 * torch.where(uniform(rng, x, 0.0, 1.0, lane=2) < 0.5, rows, columns)


def dead_pixels(x: Images, rng: Streams) -> Images:
    """Set 30 per cent of the pixels to black."""
    return x * (uniform(rng, x, 0.0, 1.0, 1, *x.shape[2:]) >= 0.3)


def wave(x: Images, rng: Streams) -> Images:
    """Add a plane wave of 3 to 8 cycles across the image in a random direction."""
    angle, cycles = uniform(rng, x, 0.0, math.pi), uniform(rng, x, 3.0, 8.0, lane=1)
    column, row = places(x)
    phase = math.pi * cycles * (angle.cos() * column + angle.sin() * row)
    return x + 0.3 * (phase + uniform(rng, x, 0.0, 2 * math.pi, lane=2)).sin()


def reweight(x: Images, rng: Streams) -> Images:
    """Scale each band of spatial frequency by a log-normal factor."""
    gain = normal(rng, x, BANDS).exp()
    band = (_radius(x) * 2 * BANDS).long().clamp(max=BANDS - 1)
    return _filtered(x, gain[:, band][:, None])


def flatten(x: Images, rng: Streams) -> Images:
    """Flatten the spectrum: square root of each amplitude, at the original standard deviation."""
    spectrum = rfft2(x - x.mean((2, 3), keepdim=True))
    y = irfft2(spectrum / spectrum.abs().sqrt().clamp(min=1e-6), s=list(x.shape[2:]))
    spread = x.std((2, 3), keepdim=True) / y.std((2, 3), keepdim=True).clamp(min=1e-6)
    return x.mean((2, 3), keepdim=True) + y * spread


def haze(x: Images, rng: Streams) -> Images:
    """Haze that increases towards the top: x t + a (1 - t), t = exp(-depth)."""
    height, width = x.shape[2:]
    unevenness = interpolate(uniform(rng, x, 0.0, 1.0, 1, 3, 3), (height, width), mode="bilinear", align_corners=False)
    depth = uniform(rng, x, 0.6, 1.2, lane=1) * (0.4 + torch.linspace(1, 0, height).to(x)[:, None] + unevenness)
    return x * (-depth).exp() + uniform(rng, x, 0.7, 0.95, lane=2) * (1 - (-depth).exp())


def flakes(x: Images, rng: Streams) -> Images:
    """White discs of many sizes: one in four of 8 x 8 cells has one."""
    there, radius = uniform(rng, x, 0.0, 1.0, 1, 8, 8) < 0.25, uniform(rng, x, 0.2, 0.5, 1, 8, 8, lane=1)
    across, down = (uniform(rng, x, -0.2, 0.2, 1, 8, 8, lane=lane) for lane in (2, 3))
    column, row = (4 * (place + 1) for place in places(x))  # 0 to 8
    cell = lambda values: _at_cells(values, column, row)
    distance = torch.hypot(column % 1 - 0.5 - cell(across), row % 1 - 0.5 - cell(down))
    cover = ((cell(radius) - distance) * 4).clamp(0, 1) * cell(there.to(x))
    return x + cover * (1 - x)


def rain(x: Images, rng: Streams) -> Images:
    """Slanted bright streaks."""
    column, row = places(x)
    slant = uniform(rng, x, -0.4, 0.4)
    across, down = 8 * (column + slant * row + 1.5), row + 1  # 0 to 24 lanes, of two drops' length
    wet = uniform(rng, x, 0.0, 1.0, 1, 2, 24, lane=1) < 0.3
    inside = (across % 1 < 0.5).to(x)
    return x + 0.7 * inside * _at_cells(wet.to(x), across, down) * (1 - x)


def _at_cells(values: Tensor, column: Tensor, row: Tensor) -> Tensor:
    """Look up ``values`` (B, 1, rows, columns) at an integer position for each pixel."""
    b, _, rows, columns = values.shape
    place = row.long().clamp(0, rows - 1) * columns + column.long().clamp(0, columns - 1)
    place = place.expand(b, 1, *place.shape[2:])
    return values.flatten(2).gather(2, place.flatten(2)).view_as(place)


def _radius(x: Images) -> Tensor:
    return torch.hypot(fftfreq(x.shape[2])[:, None], rfftfreq(x.shape[3])[None])


def _filtered(x: Images, gain: Tensor) -> Images:
    mean = x.mean((2, 3), keepdim=True)
    return mean + irfft2(rfft2(x - mean) * gain, s=list(x.shape[2:]))
