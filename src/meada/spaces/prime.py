"""Random smooth changes of colour, neighbourhood and place, one per image (PRIME: Modas et al., 2022)."""

import math

import torch
from torch import Tensor
from torch.nn.functional import conv2d, grid_sample, pad

from meada.errors import MeadaError
from meada.images.constants import constant
from meada.spaces.space import Random, Shape, Space, Theta, positive
from meada.types import Images

LEVELS = 256  # entries of the table that stands for a curve


def colour_curve(*, strength: float = 1.0, frequencies: int = 20) -> Space:
    r"""Map each pixel by :math:`x + s \sum_{f=1}^F a_f \sin(\pi f x)`.

    The coefficients :math:`a_f` are N(0, 0.05 * strength) per image and channel, s is uniform in [0, 1] per
    image. A curve is evaluated once at 256 levels and interpolated, so that its cost does not depend on F.
    """
    if frequencies < 1:
        raise MeadaError(f"frequencies must be 1 or more, got {frequencies}")
    deviation = 0.05 * positive("strength", strength)

    def draw(random: Random, shape: Shape) -> Theta:
        scale = deviation * random.uniform("scale")[:, None, None]
        return {"coefficients": scale * random.normal("coefficients", shape[1], frequencies)}

    def transform(x: Images, theta: Theta) -> Images:
        return x + look_up(theta["coefficients"].to(x) @ _curves(frequencies, x.dtype, x.device), x)

    return Space(
        draw=draw, transform=transform, families=frozenset({"tone", "colour"}), smooth=True, name="colour_curve"
    )


def look_up(table: Tensor, x: Images) -> Images:
    """The values of ``table`` (B, C, 256) at the pixels of ``x``, linear between two levels."""
    place = x.detach().clamp(0, 1).flatten(2) * (LEVELS - 1)
    below = place.long().clamp_(max=LEVELS - 2)
    low, high = table.gather(2, below), table.gather(2, below + 1)
    return torch.lerp(low, high, place - below).view_as(x)


@constant
def _curves(frequencies: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    levels = torch.linspace(0, 1, LEVELS, dtype=dtype, device=device)
    f = torch.arange(1, frequencies + 1, dtype=dtype, device=device)
    return torch.sin(math.pi * f[:, None] * levels)


def filter(*, strength: float = 1.0) -> Space:
    """Convolve with ``delta + sigma * N(0, 1)``, where sigma is uniform in [0, 4 * strength].

    Borders are repeated, so that they do not turn dark.
    """
    most = 4.0 * positive("strength", strength)

    def draw(random: Random, shape: Shape) -> Theta:
        sigma = random.uniform("sigma", high=most)
        kernel = sigma[:, None, None] * random.normal("kernel", 3, 3)
        kernel[:, 1, 1] += 1
        return {"kernel": kernel}

    def transform(x: Images, theta: Theta) -> Images:
        n, c, h, w = x.shape
        weight = theta["kernel"].to(x)[:, None].expand(n, c, 3, 3).reshape(n * c, 1, 3, 3)
        padded = pad(x, (1, 1, 1, 1), mode="replicate").reshape(1, n * c, h + 2, w + 2)
        return conv2d(padded, weight, groups=n * c).view(n, c, h, w)

    return Space(
        draw=draw, transform=transform, families=frozenset({"filter", "edges", "blur"}), smooth=True, name="filter"
    )


def warp(*, strength: float = 1.0, modes: int = 6) -> Space:
    r"""Move each pixel by :math:`\sum_{ij} C_{ij} \sin(\pi i u) \sin(\pi j v)` in each direction.

    The coefficients are N(0, 1 / (i^2 + j^2)) with :math:`i, j \le` ``modes`` and scaled so that the root mean
    square displacement is uniform in [0, 0.04 * strength] of the image's side. The border stays where it is.
    """
    if modes < 1:
        raise MeadaError(f"modes must be 1 or more, got {modes}")
    most = 0.04 * positive("strength", strength)
    number = torch.arange(1, modes + 1, dtype=torch.float32)
    decay = (number[:, None] ** 2 + number**2).rsqrt() * (number[:, None] ** 2 + number**2 < (modes + 0.5) ** 2)
    size = float(decay.square().sum().sqrt()) / 2  # of the field: each product of sines has mean square 1/4

    def draw(random: Random, shape: Shape) -> Theta:
        scale = random.uniform("scale", high=most)[:, None, None, None] / size
        return {"coefficients": scale * decay * random.normal("coefficients", 2, modes, modes)}

    def transform(x: Images, theta: Theta) -> Images:
        h, w = x.shape[2:]
        rows, columns = (_sines(modes, n, x.dtype, x.device) for n in (h, w))
        shift = rows.T @ theta["coefficients"].to(x) @ columns  # (B, 2, H, W), in parts of the side
        grid = _places(h, w, x.dtype, x.device) + 2 * shift.permute(0, 2, 3, 1)  # grid_sample's side is 2
        return grid_sample(x, grid, padding_mode="border", align_corners=False)

    return Space(draw=draw, transform=transform, families=frozenset({"geometry"}), smooth=True, name="warp")


@constant
def _grid(n: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Centres of ``n`` pixels in grid_sample's coordinates, -1 to 1."""
    return (torch.arange(n, dtype=dtype, device=device) * 2 + 1) / n - 1


@constant
def _places(h: int, w: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Centres of all pixels, (H, W, 2), the column first."""
    rows, columns = (_grid(n, dtype, device) for n in (h, w))
    return torch.stack(torch.meshgrid(rows, columns, indexing="ij")[::-1], -1)


@constant
def _sines(modes: int, n: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    number = torch.arange(1, modes + 1, dtype=dtype, device=device)
    return torch.sin(math.pi * number[:, None] * (_grid(n, dtype, device) + 1) / 2)
