"""Random convolutions: new local textures and colours, the same shapes (RandConv: Xu et al., 2021)."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import conv2d, pad

from meada.errors import MeadaError, check_count
from meada.spaces.space import Random, Shape, Space, Theta, positive
from meada.types import Images


def random_convolution(*, sizes: Sequence[int] = (1, 3, 5, 7), bank: int = 8, strength: float = 1.0) -> Space:
    """Convolve all channels with one random kernel, size uniform over ``sizes``, weights N(0, 1 / (C k^2)).

    Images are centred at mid-grey first, so that padding does not turn borders dark.

    Args:
        sizes: odd kernel sizes.
        bank: kernels per step and candidate, from which each sample uses one; 0 gives each sample its own,
            which is slower for large images.
        strength: 1 is the convolution itself; below 1 it is blended with the image.
    """
    if not sizes or any(k < 1 or k % 2 == 0 for k in sizes):
        raise MeadaError(f"sizes must be odd and 1 or more, got {list(sizes)}")
    check_count("bank", bank, least=0)
    share, largest = positive("strength", strength), max(sizes)
    every, distance = torch.tensor(sizes), _centred(largest)

    def draw(random: Random, shape: Shape) -> Theta:
        c = shape[1]
        source, group = (random.bank("kernel", bank) if bank else random).distinct()
        size = every[source.integers("size", len(sizes))]
        kernel = source.normal("weights", c, c, largest, largest)
        inside = distance < size[:, None, None] / 2  # (B, K, K)
        scale = 1 / torch.sqrt(c * size.float() ** 2)
        kernel = kernel * (inside * scale[:, None, None])[:, None, None]
        return {"kernel": kernel[group], "size": size[group], "group": group}

    def transform(x: Images, theta: Theta) -> Images:
        kernel, size, group = theta["kernel"].to(x), theta["size"], theta["group"]
        convolve = _shared if bank and not kernel.requires_grad else _own  # an ascent moves each sample's own
        out = convolve(x - 0.5, kernel, size, group).add_(0.5)
        return out.sub_(x).mul_(share).add_(x)

    def project(theta: Theta) -> Theta:  # after a gradient step every sample has a kernel of its own
        return {**theta, "group": torch.arange(len(theta["group"]))}

    return Space(
        draw=draw,
        transform=transform,
        families=frozenset({"filter", "edges", "blur", "tone", "colour"}),
        smooth=True,
        project=project,
        name="random_convolution",
    )


def _centred(size: int) -> Tensor:
    """Distance of each entry of a kernel from its centre, in the maximum norm."""
    d = (torch.arange(size) - size // 2).abs()
    return torch.maximum(d[:, None], d)


def _own(x: Images, kernel: Tensor, size: Tensor, group: Tensor) -> Images:
    """Convolve each sample with its own kernel: one grouped convolution per kernel size."""
    out = torch.empty_like(x)
    for k in size.unique().tolist():
        rows = (size == k).nonzero().flatten()
        n, c, h, w = x[rows].shape
        wide = pad(x[rows], [k // 2] * 4).reshape(1, n * c, h + k - 1, w + k - 1)
        out[rows] = conv2d(wide, _cut(kernel[rows], k).flatten(0, 1), groups=n).view(n, c, h, w)
    return out


def _shared(x: Images, kernel: Tensor, size: Tensor, group: Tensor) -> Images:
    """One ordinary convolution for each set of samples that share a kernel."""
    out = torch.empty_like(x)
    order, counts, sizes = group.argsort(stable=True), group.bincount().tolist(), size.tolist()
    for rows in order.split([count for count in counts if count]):
        first, mine = int(rows[0]), rows.to(x.device)
        k = sizes[first]
        part = conv2d(x.index_select(0, mine), _cut(kernel[first], k), padding=k // 2)
        out.index_copy_(0, mine, part)
    return out


def _cut(kernel: Tensor, k: int) -> Tensor:
    """The central ``k`` x ``k`` entries of a kernel; the others are zero."""
    margin = (kernel.shape[-1] - k) // 2
    return kernel[..., margin : margin + k, margin : margin + k]
