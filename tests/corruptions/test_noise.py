"""Noise has the distribution that its constants say."""

import numpy as np
import pytest
from scipy import stats

from meada.corruptions import SEVERITIES, corrupt
from meada.corruptions.constants import CIFAR, TABLES
from meada.corruptions.noise import COLUMNS, ONE, _aliases, _small_counts
from meada.streams import sample_streams


def grey(level: float, n: int = 40) -> np.ndarray:
    return np.full((n, 3, 32, 32), level)


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize(("name", "level"), [("gaussian_noise", 1.0), ("speckle_noise", 0.5)])
def test_normal_noise(name, level, severity) -> None:
    """On a grey of one half; speckle is in proportion to it."""
    z = (corrupt(grey(0.5, n=400), name, severity) - 0.5).ravel() / level
    expected = CIFAR[name][severity - 1][0]
    assert z.mean() == pytest.approx(0, abs=5 * expected / np.sqrt(z.size))
    inside = stats.truncnorm(-0.5 / level / expected, 0.5 / level / expected).std()  # of the range
    assert z.std() == pytest.approx(expected * inside, rel=5 / np.sqrt(2 * z.size))
    assert stats.kstest(z[::10] / expected, "norm").pvalue > 1e-4


def test_channels_and_pixels_have_noise_of_their_own() -> None:
    z = corrupt(grey(0.5), "gaussian_noise", 1) - 0.5
    for a, b in ((z[:, 0], z[:, 1]), (z[..., 1:], z[..., :-1]), (z[1:], z[:-1])):
        assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 5 / np.sqrt(a.size)


def test_8_bit_noise_is_cut_off_and_truncated() -> None:
    """Of an integer level plus noise the floor is taken: half a level darker on average."""
    eight = corrupt(np.full((40, 3, 32, 32), 128, np.uint8), "gaussian_noise", 1).astype(int)
    assert (eight - 128).mean() == pytest.approx(-0.5, abs=5 * 10.2 / np.sqrt(eight.size))
    white = corrupt(np.full((4, 3, 32, 32), 255, np.uint8), "gaussian_noise", 5)
    assert (white == 255).mean() == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("level", [64 / 255, 100.37 / 255])
@pytest.mark.parametrize("table", TABLES)
def test_shot_noise_counts_photons(level, severity, table) -> None:
    """A Poisson count: its variance is its mean; levels between two 8-bit ones are exact, too."""
    photons = int(TABLES[table]["shot_noise"][severity - 1][0])
    y = corrupt(grey(level), "shot_noise", severity, constants=table)
    seen = np.bincount(np.rint(y * photons).astype(int).ravel(), minlength=photons + 1)
    law = stats.poisson(level * photons)
    expected = np.append(law.pmf(np.arange(photons)), law.sf(photons - 1)) * y.size  # white caps
    common = expected > 10
    assert seen[~common].sum() <= expected[~common].sum() + 30
    scaled = expected[common] * seen[common].sum() / expected[common].sum()
    assert stats.chisquare(seen[common], scaled).pvalue > 1e-4


@pytest.mark.parametrize("rate", [0.1, 0.7, 1.9])
def test_small_counts_are_poisson(rate) -> None:
    counts = _small_counts(np.full((100, 1, 32, 32), rate), sample_streams(0, "a", 1, np.arange(100)))
    seen = np.bincount(counts.astype(int).ravel(), minlength=6)[:6]
    expected = stats.poisson.pmf(np.arange(6), rate) * counts.size
    assert np.abs(seen - expected).max() < 5 * np.sqrt(expected.max())
    assert stats.chisquare(seen, expected * seen.sum() / expected.sum()).pvalue > 1e-4


@pytest.mark.parametrize("photons", [500.0, 50.0, 3.0])
def test_alias_tables_hold_the_poisson_distribution(photons) -> None:
    """Each level's columns, added up by count, against SciPy's probabilities."""
    share, own, other = _aliases(photons)
    for level in (0, 1, 100, 255):
        rows = slice(level * COLUMNS, (level + 1) * COLUMNS)
        mass = np.zeros(1200)
        np.add.at(mass, own[rows].astype(int), share[rows] / ONE / COLUMNS)
        np.add.at(mass, other[rows].astype(int), 1 / COLUMNS - share[rows] / ONE / COLUMNS)
        expected = stats.poisson.pmf(np.arange(1200), level / 255 * photons)
        np.testing.assert_allclose(mass, expected, atol=3e-8)


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("table", TABLES)
def test_impulse_noise_is_salt_and_pepper(severity, table) -> None:
    amount = TABLES[table]["impulse_noise"][severity - 1][0]
    y = corrupt(np.full((100, 3, 32, 32), 99, np.uint8), "impulse_noise", severity, constants=table)
    spread = 5 * np.sqrt(amount / 2 / y.size)
    assert (y == 0).mean() == pytest.approx(amount / 2, abs=spread)
    assert (y == 255).mean() == pytest.approx(amount / 2, abs=spread)
    assert ((y == 99) | (y == 0) | (y == 255)).all()


def test_impulses_hit_channels_one_by_one() -> None:
    y = corrupt(np.full((100, 3, 32, 32), 99, np.uint8), "impulse_noise", 5) != 99
    both = (y[:, 0] & y[:, 1]).mean()
    assert both == pytest.approx(0.07**2, rel=0.15)
