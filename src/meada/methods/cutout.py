"""Cutout (DeVries and Taylor, 2017): hide a square of every image."""

from functools import partial

import torch
from torch import nn

from meada.errors import check_range
from meada.images.random_ops import randint
from meada.methods.method import Context, Method, cross_entropy_loss
from meada.types import Batch, Images, Scalar


def cutout(*, side: float = 0.5) -> Method:
    """A square of ``side`` times the image's (16 of 32 pixels) about a random pixel, an image.

    It may reach over the edge. What is hidden is mid-grey, which the networks' normalisation,
    (x - 0.5) / 0.5, turns into the zero that the authors fill with.
    """
    check_range("cutout", "[0, 1)", side=side)
    return Method(
        loss=partial(hidden_loss, side=side),
        title="Cutout",
        about="Cover a random square of every training image.",
        families=frozenset({"occlusion"}),
    )


def hidden_loss(net: nn.Module, batch: Batch, context: Context, *, side: float) -> Scalar:
    return cross_entropy_loss(net, batch._replace(x=hide(batch.x, context.each, side)), context)


def hide(x: Images, generator: torch.Generator, side: float) -> Images:
    """Grey out one square an image."""
    n, _, h, w = x.shape
    rows, columns = (_within(randint(k, x, n, generator=generator), k, round(side * k)) for k in (h, w))
    return torch.where((rows[:, :, None] & columns[:, None])[:, None], torch.full_like(x, 0.5), x)


def _within(centre: torch.Tensor, side: int, length: int) -> torch.Tensor:
    """(N, side): which pixels lie within ``length`` about each centre."""
    place = torch.arange(side, device=centre.device) - centre[:, None]
    return (place >= -(length // 2)) & (place < length - length // 2)
