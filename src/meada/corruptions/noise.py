"""Noise corruptions: Gaussian, shot (photon counting) and impulse noise."""

import numpy as np

from meada.corruptions.arrays import Levels
from meada.corruptions.poisson import counts
from meada.streams import Streams


def gaussian_noise(x: Levels, rng: Streams, deviation: float) -> Levels:
    """Each value moves by a normal deviate; ``deviation`` is in units of the whole range."""
    noise = rng.normal(x.shape[1:])
    noise *= np.float32(255 * deviation)
    return x + noise


def shot_noise(x: Levels, rng: Streams, photons: float) -> Levels:
    """Each value is counted in photons, of which white has ``photons``."""
    return counts(x, photons, rng) * (255 / photons)


def impulse_noise(x: Levels, rng: Streams, amount: float) -> Levels:
    """Salt and pepper: a share ``amount`` of the values is black or white, half and half."""
    u = rng.thirty_two(x.shape[1:])
    half = np.uint32(round(amount / 2 * 2**32))
    y = x.copy()
    np.copyto(y, 0, where=u < half)
    np.copyto(y, 255, where=u > np.uint32(2**32 - 1) - half)
    return y


def speckle_noise(x: Levels, rng: Streams, deviation: float) -> Levels:
    """Noise in proportion to the value it falls on."""
    noise = rng.normal(x.shape[1:])
    noise *= np.float32(deviation)
    return x + x * noise
