"""Smooth random displacements of the pixels, one field per image (PRIME: Modas et al., 2022)."""

import math

import torch
from torch import Tensor
from torch.nn.functional import grid_sample

from meada.errors import check_count
from meada.images.constants import constant
from meada.spaces.space import Random, Shape, Space, Theta, positive
from meada.types import Images


def warp(*, strength: float = 1.0, modes: int = 6) -> Space:
    r"""Move each pixel by :math:`\sum_{ij} C_{ij} \sin(\pi i u) \sin(\pi j v)` in each direction.

    The coefficients are N(0, 1 / (i^2 + j^2)) with :math:`i, j \le` ``modes``, times a scale per image such that the
    expected root mean square displacement is uniform in [0, 0.04 * strength] of the image's side. The border stays
    where it is. At strength 1 about one field in ten folds somewhere (on average in 0.8 % of its pixels), at 0.3 none.
    """
    check_count("modes", modes, least=1)
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
