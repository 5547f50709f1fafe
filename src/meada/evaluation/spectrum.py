"""Where in frequency a perturbation lies: the paper says that it lies in the high ones."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.fft import fft2, fftfreq, fftshift

from meada.pool import Pool
from meada.types import Images, Labels

Power = Float[Tensor, "H W"]  # mean energy at each frequency, zero frequency in the middle
EDGES = tuple(k / 16 for k in range(8))  # cycles a pixel; the last band takes the corners too


def power(images: Images) -> Power:
    """Mean over samples and channels; summed over frequencies, the mean squared norm of a channel.

    >>> flat = torch.ones(1, 1, 4, 4)
    >>> power(flat)[2, 2], power(flat).sum()
    (tensor(16.), tensor(16.))
    """
    energy = fft2(images.float(), norm="ortho").abs().square()
    return fftshift(energy.mean((0, 1)))


def bands(energy: Power) -> list[float]:
    """Which part of the energy lies in each band of radius |f|, from low to high.

    >>> [round(part, 3) for part in bands(torch.ones(32, 32))]  # white noise
    [0.009, 0.035, 0.062, 0.082, 0.109, 0.129, 0.168, 0.405]
    """
    h, w = energy.shape
    radius = fftshift(torch.hypot(fftfreq(h)[:, None], fftfreq(w)[None]))
    place = torch.bucketize(radius, torch.tensor(EDGES), right=True) - 1
    sums = energy.new_zeros(len(EDGES)).index_add_(0, place.flatten(), energy.flatten())
    total = sums.sum()
    return (sums / total if total > 0 else sums).tolist()


def spectra(pool: Pool, index: Labels, block: int = 256) -> tuple[Power, Power]:
    """Of the perturbations of the latest block at ``index``, and of the images they were put on."""
    born, start = pool.blocks[-1], len(pool) - len(pool.blocks[-1].labels)
    moved = there = torch.zeros(pool.blocks[0].images.shape[2:], dtype=torch.float32)
    for i in index.split(block):
        parents, part = pool.images(born.parents[i]), len(i) / len(index)
        moved = moved + part * power(pool.images(start + i) - parents)
        there = there + part * power(parents)
    return moved, there


def in_bands(moved: Power, there: Power) -> dict[str, Any]:
    return {
        "edges": list(EDGES),
        "perturbation": bands(moved),
        "images": bands(there),
        "white": bands(torch.ones_like(moved)),  # what white noise would have
    }
