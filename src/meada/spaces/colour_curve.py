"""Random smooth colour curves, one per image and channel (PRIME: Modas et al., 2022)."""

import math

import torch
from torch import Tensor

from meada.errors import check_count
from meada.images.constants import constant
from meada.spaces.space import Random, Shape, Space, Theta, positive
from meada.types import Images

LEVELS = 256  # entries of the table that stands for a curve


def colour_curve(*, strength: float = 1.0, frequencies: int = 20) -> Space:
    r"""Map each pixel by :math:`x + s \sum_{f=1}^F a_f \sin(\pi f x)`.

    The coefficients :math:`a_f` are N(0, 0.05 * strength) per image and channel, s is uniform in [0, 1] per
    image. A curve is evaluated once at 256 levels and interpolated, so that its cost does not depend on F.
    """
    check_count("frequencies", frequencies, least=1)
    deviation = 0.05 * positive("strength", strength)

    def draw(random: Random, shape: Shape) -> Theta:
        scale = deviation * random.uniform("scale")[:, None, None]
        return {"coefficients": scale * random.normal("coefficients", shape[1], frequencies)}

    def transform(x: Images, theta: Theta) -> Images:
        return x + look_up(theta["coefficients"].to(x) @ _sines(frequencies, x.dtype, x.device), x)

    return Space(
        draw=draw, transform=transform, families=frozenset({"tone", "colour"}), smooth=True, name="colour_curve"
    )


def look_up(table: Tensor, x: Images) -> Images:
    """The values of ``table`` (B, C, 256) at the pixels of ``x``, linear between two levels."""
    place = x.clamp(0, 1).flatten(2) * (LEVELS - 1)
    below = place.detach().long().clamp_(max=LEVELS - 2)
    low, high = table.gather(2, below), table.gather(2, below + 1)
    return torch.lerp(low, high, place - below).view_as(x)


@constant
def _sines(frequencies: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    levels = torch.linspace(0, 1, LEVELS, dtype=dtype, device=device)
    f = torch.arange(1, frequencies + 1, dtype=dtype, device=device)
    return torch.sin(math.pi * f[:, None] * levels)
