"""Where a perturbation lies in frequency."""

import math

import pytest
import torch
from torch.testing import assert_close

from meada.evaluation.spectrum import EDGES, bands, in_bands, power, spectra
from meada.pool import Pool


def wave(frequency: float, side: int = 32) -> torch.Tensor:
    """A plane wave along the columns, so many cycles a pixel."""
    row = torch.cos(2 * math.pi * frequency * torch.arange(side))
    return row.expand(1, 1, side, side)


@pytest.mark.parametrize("cycles", [0, 2, 4, 7, 9, 13, 16])
def test_a_wave_lies_in_the_band_of_its_frequency(cycles):
    frequency = cycles / 32
    parts = bands(power(wave(frequency)))
    assert parts[int(frequency * 16) if frequency < 0.5 else 7] == pytest.approx(1, abs=1e-6)


def test_the_corners_belong_to_the_last_band():
    checks = (-1.0) ** (torch.arange(8)[:, None] + torch.arange(8))
    assert bands(power(checks.expand(1, 1, 8, 8)))[-1] == pytest.approx(1)


def test_energy_is_kept():
    images = torch.rand(3, 2, 8, 6)
    assert_close(power(images).sum().double(), images.square().sum((2, 3)).mean(), rtol=1e-5, atol=0)


def test_white_noise_is_flat():
    noise = torch.randn(200, 3, 16, 16)
    told = in_bands(power(noise), power(noise))
    assert torch.allclose(torch.tensor(told["perturbation"]), torch.tensor(told["white"]), atol=0.01)
    assert sum(told["white"]) == pytest.approx(1) and len(told["white"]) == len(EDGES)


def test_nothing_moved_is_no_energy():
    assert bands(torch.zeros(4, 4)) == [0.0] * 8


def test_children_are_taken_against_their_own_parents():
    x = torch.rand(6, 3, 8, 8) * 0.5
    pool = Pool(x, torch.zeros(6).long())
    parents = torch.tensor([5, 3, 1, 0])
    pool.append((x + wave(0.5, 8) * 0.1 + 0.1)[parents], parents=parents)
    moved, there = spectra(pool, torch.arange(4), block=3)
    assert_close(moved, power(wave(0.5, 8) * 0.1 + 0.1), rtol=1e-4, atol=1e-6)
    assert_close(there, power(x[parents]), rtol=1e-4, atol=1e-6)
