"""Random flip and crop of a batch of 8-bit images, the augmentation of the minimisation phase."""

from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from meada.errors import MeadaError
from meada.types import Labels


def flip_and_crop(images: Tensor, generator: torch.Generator, padding: int = 4) -> Tensor:
    """Mirror each image or not at random, pad it with black and crop it at random to its own size.

    Section 4.3 of the paper ("standard random left-right flipping and cropping"). A pixel is moved
    or it is black; none is changed. Images keep their type, 8 bits as a rule.

    >>> x = torch.arange(6, dtype=torch.uint8).view(1, 1, 2, 3)
    >>> flip_and_crop(x, torch.Generator().manual_seed(4), padding=1)
    tensor([[[[0, 2, 1],
              [0, 5, 4]]]], dtype=torch.uint8)
    """
    n, where = len(images), generator.device
    top, left = torch.randint(2 * padding + 1, (2, n), generator=generator, device=where)
    mirrored = torch.randint(2, (n,), generator=generator, device=where)
    return mirror_and_cut(images, mirrored.bool(), top, left, padding)


def mirror_and_cut(images: Tensor, mirrored: Tensor, top: Labels, left: Labels, padding: int) -> Tensor:
    """Flip the images marked in ``mirrored``, pad with ``padding`` black pixels on each side and crop.

    ``top`` and ``left`` say where in the padded image the cut begins, from 0 to ``2 * padding``.
    """
    if images.ndim != 4 or 0 in images.shape[1:]:
        raise MeadaError(f"images must have shape (N, C, H, W), got {tuple(images.shape)}")
    if padding < 0:
        raise MeadaError(f"padding must be 0 or more pixels, got {padding}")
    top, left = top.to(images.device), left.to(images.device)
    mirrored = mirrored.to(images.device)
    # Mirrored first, or cut first from the mirrored place: the same, and the second is less to pad.
    left, which = torch.where(mirrored, 2 * padding - left, left), mirrored.nonzero().flatten()
    padded = pad(images, (padding,) * 4)
    if images.device.type != "cpu":
        out = _cut_by_index(padded, top, left, images.shape)
        return out.index_copy_(0, which, out.index_select(0, which).flip(-1))
    out = _cut(padded, top, left, images.shape)
    # Through numpy, which writes rows whole: some thirty times faster than index_copy_ here.
    out.numpy()[which.numpy()] = out.index_select(0, which).flip(-1).numpy()
    return out


def _cut(padded: Tensor, top: Labels, left: Labels, shape: torch.Size) -> Tensor:
    """Crop by copying rows, each from any start pixel."""
    (n, c, h, w), (height, width) = shape, padded.shape[-2:]
    first = torch.arange(n) * (c * height * width) + top * width + left
    pixels = padded.numpy().reshape(-1)
    item = pixels.itemsize
    begins = np.ndarray((max(pixels.size - w + 1, 0),), f"V{w * item}", pixels, strides=(item,))
    taken = begins[first.numpy()[:, None] + _rows_of_a_cut(c, h, height, width)]
    return torch.from_numpy(taken.view(pixels.dtype).reshape(n, c, h, w))


@cache
def _rows_of_a_cut(channels: int, rows: int, height: int, width: int) -> NDArray[np.int64]:
    """Offsets of the rows in a padded image, from the crop's first pixel."""
    places = np.arange(channels)[:, None] * height + np.arange(rows)
    return (places * width).reshape(-1)


def _cut_by_index(padded: Tensor, top: Labels, left: Labels, shape: torch.Size) -> Tensor:
    """Crop by indexing pixels, for devices other than the CPU."""
    (n, c, h, w), device = shape, padded.device
    image, channel, row, column = (torch.arange(size, device=device) for size in (n, c, h, w))
    rows, columns = (top[:, None] + row).view(n, 1, h, 1), (left[:, None] + column).view(n, 1, 1, w)
    return padded[image.view(n, 1, 1, 1), channel.view(1, c, 1, 1), rows, columns]
