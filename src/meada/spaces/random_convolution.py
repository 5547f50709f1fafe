"""Random convolutions: new local textures and colours, the same shapes (RandConv: Xu et al., 2021)."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import conv2d, pad

from meada.errors import MeadaError
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
    if bank < 0:
        raise MeadaError(f"bank must be 0 or more, got {bank}")
    share, largest = positive("strength", strength), max(sizes)
    d = (torch.arange(largest) - largest // 2).abs()
    distance = torch.maximum(d[:, None], d)  # of each entry of a kernel from its centre

    def draw(random: Random, shape: Shape) -> Theta:
        c = shape[1]
        source = random.bank("kernel", bank) if bank else random
        size = torch.tensor(sizes)[source.integers("size", len(sizes))]
        kernel = source.normal("weights", c, c, largest, largest)
        inside = distance < size[:, None, None] / 2  # (B, K, K)
        scale = 1 / torch.sqrt(c * size.float() ** 2)
        kernel = kernel * (inside * scale[:, None, None])[:, None, None]
        return {"kernel": kernel, "size": size, "group": source.groups()}

    def transform(x: Images, theta: Theta) -> Images:
        kernel, size, group = theta["kernel"].to(x), theta["size"], theta["group"]
        out = torch.empty_like(x)
        convolve = _shared if bank and not kernel.requires_grad else _own  # an ascent moves each sample's own
        for k in size.unique().tolist():
            rows = (size == k).nonzero().flatten()
            cut = slice((largest - k) // 2, (largest + k) // 2)
            out[rows] = convolve(x[rows] - 0.5, kernel[rows][..., cut, cut], group[rows])
        return x + share * (out + 0.5 - x)

    return Space(
        draw=draw,
        transform=transform,
        families=frozenset({"filter", "edges", "blur", "tone", "colour"}),
        smooth=True,
        name="random_convolution",
    )


def _own(x: Images, kernel: Tensor, group: Tensor) -> Images:
    """Each sample with its own kernel: one convolution with a group per sample."""
    n, c, h, w = x.shape
    margin = kernel.shape[-1] // 2
    wide = pad(x, [margin] * 4).reshape(1, n * c, h + 2 * margin, w + 2 * margin)
    return conv2d(wide, kernel.flatten(0, 1), groups=n).view(n, c, h, w)


def _shared(x: Images, kernel: Tensor, group: Tensor) -> Images:
    """Samples that share a kernel in one ordinary convolution each."""
    numbers, order = group.unique(return_inverse=True)
    rows = [(order == i).nonzero().flatten() for i in range(len(numbers))]
    parts = [conv2d(x[r], kernel[r[0]], padding=kernel.shape[-1] // 2) for r in rows]
    return torch.cat(parts)[torch.cat(rows).argsort()]
