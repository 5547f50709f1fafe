"""Additive planar waves, per sample and channel (AFA: Vaish et al., 2024)."""

import math

import torch

from meada.spaces.space import Random, Shape, Space, Theta, per_image, positive
from meada.types import Images


def wave(*, strength: float = 1.0) -> Space:
    r"""Add :math:`a \sin(2\pi f (u \cos\phi + v \sin\phi) + \psi)` to each channel.

    The frequency is uniform from one period per image up to half a period per pixel, the direction and
    the phase are uniform, and the amplitude is exponential with mean 0.2 times ``strength``.
    """
    mean = 0.2 * positive("strength", strength)

    def draw(random: Random, shape: Shape) -> Theta:
        channels, longest = shape[1], max(shape[2:])
        return {
            "amplitude": -mean * torch.log1p(-random.uniform("amplitude", channels)),
            "frequency": random.uniform("frequency", channels, low=1.0, high=max(longest / 2, 1.0)) / longest,
            "angle": random.uniform("angle", channels, high=math.pi),
            "phase": random.uniform("phase", channels, high=2 * math.pi),
        }

    def transform(x: Images, theta: Theta) -> Images:
        amplitude, frequency, angle, phase = (
            per_image(theta[name], x) for name in ("amplitude", "frequency", "angle", "phase")
        )
        v, u = (torch.arange(n, dtype=x.dtype, device=x.device) for n in x.shape[2:])
        place = v[:, None] * angle.sin() + u * angle.cos()
        return x + amplitude * torch.sin(2 * math.pi * frequency * place + phase)

    return Space(draw=draw, transform=transform, families=frozenset({"frequency"}), smooth=True, name="wave")
