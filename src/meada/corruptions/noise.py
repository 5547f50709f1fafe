"""Noise corruptions: Gaussian, shot (photon counting), impulse and speckle noise."""

from functools import lru_cache

import numpy as np
from jaxtyping import Float, Float64, Int64, UInt32

from meada.corruptions.operators import Levels
from meada.streams import Streams

Masses = Float64[np.ndarray, "levels columns"]
Counts = Float[np.ndarray, " rows"]
COLUMNS = 256  # 5.7 deviations to each side at the largest rate, 500: what is left out is 1e-8
ONE = 1 << 24  # a whole column


def gaussian_noise(x: Levels, rng: Streams, deviation: float) -> Levels:
    """Add Gaussian noise; ``deviation`` is relative to the range of values."""
    noise = rng.normal(x.shape[1:])
    noise *= np.float32(255 * deviation)
    return x + noise


def shot_noise(x: Levels, rng: Streams, photons: float) -> Levels:
    """Poisson noise: the number of photons per value, of which white has ``photons``."""
    return poisson_counts(x, photons, rng) * (255 / photons)


def impulse_noise(x: Levels, rng: Streams, amount: float) -> Levels:
    """Salt and pepper: set a share ``amount`` of the values to black or white with equal probability."""
    u = rng.thirty_two(x.shape[1:])
    half = np.uint32(round(amount / 2 * 2**32))
    y = x.copy()
    np.copyto(y, 0, where=u < half)
    np.copyto(y, 255, where=u > np.uint32(2**32 - 1) - half)
    return y


def speckle_noise(x: Levels, rng: Streams, deviation: float) -> Levels:
    """Gaussian noise proportional to the value."""
    noise = rng.normal(x.shape[1:])
    noise *= np.float32(deviation)
    return x + x * noise


def poisson_counts(x: Levels, photons: float, rng: Streams) -> Levels:
    """Poisson counts with mean ``x / 255 * photons`` per pixel, by a table look-up (alias method).

    Walker's alias method: an 8-bit pixel has one of 256 rates. For each of them the distribution is laid out on 256
    columns of equal mass, each shared by at most two counts, so that eight bits choose a column and twenty-four decide
    between its two counts. What a float pixel has beyond its level is a further, independent count.
    """
    level = np.floor(x + 1e-3)  # 1e-3: a float pixel that is a level up to rounding is that level
    bits = rng.thirty_two(x.shape[1:])
    share, own, other = _aliases(photons)
    row = (level.astype(np.uint16) << 8) | (bits & np.uint32(255)).astype(np.uint16)
    drawn = np.where((bits >> np.uint32(8)) < share.take(row), own.take(row), other.take(row))
    excess = x - level
    if excess.max(initial=0) <= 1e-3:
        return drawn
    return drawn + _small_counts(np.where(excess > 1e-3, excess, 0) / 255 * photons, rng)


def _small_counts(rate: Levels, rng: Streams) -> Levels:
    """Counts of rates below 2, by inverting the distribution function."""
    u = (rng.thirty_two(rate.shape[1:], lane=1) + 0.5) * 2.0**-32
    mass = np.exp(-rate)
    reached, count = mass.copy(), np.zeros_like(rate)
    for k in range(1, 24):  # P(count > 23) < 1e-16 at rate 2
        beyond = u > reached
        if not beyond.any():
            break
        count += beyond
        mass *= rate / k
        reached += mass
    return count


@lru_cache(maxsize=10)
def _aliases(photons: float) -> tuple[UInt32[np.ndarray, " rows"], Counts, Counts]:
    """``share``, ``own``, ``other``: column c of level v holds count ``own`` below ``share`` and ``other`` above it."""
    from scipy.stats import poisson  # takes most of a second to import

    rate = np.arange(256) / 255 * photons
    lowest = np.maximum(np.floor(rate) - COLUMNS // 2, 0).astype(np.int64)
    count = lowest[:, None] + np.arange(COLUMNS)
    mass = poisson.pmf(count, rate[:, None])
    share, other = _lay_out(mass / mass.sum(1, keepdims=True) * COLUMNS)
    swap = np.take_along_axis(count, other, 1)
    threshold = np.rint(share * ONE).astype(np.uint32)
    return threshold.ravel(), count.ravel().astype(np.float32), swap.ravel().astype(np.float32)


def _lay_out(mass: Masses) -> tuple[Masses, Int64[np.ndarray, "levels columns"]]:
    """Fill the emptiest column from the fullest until all hold one; every level at once."""
    levels = np.arange(len(mass))
    share, other = np.ones_like(mass), np.tile(np.arange(mass.shape[1]), (len(mass), 1))
    waiting = mass.copy()  # infinite once filled
    for _ in range(mass.shape[1] - 1):
        poor = waiting.argmin(1)
        rich = np.where(np.isinf(waiting), -np.inf, waiting).argmax(1)
        share[levels, poor] = waiting[levels, poor]
        other[levels, poor] = rich
        waiting[levels, rich] -= 1 - share[levels, poor]
        waiting[levels, poor] = np.inf
    return np.clip(share, 0, 1), other
