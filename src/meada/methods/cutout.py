"""Cutout (DeVries and Taylor, 2017): hide a square of every image."""

import torch
from torch import Tensor, nn

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

    def loss(net: nn.Module, batch: Batch, context: Context) -> Scalar:
        return cross_entropy_loss(net, batch._replace(x=hide(batch.x, context.each, side)), context)

    return Method(
        loss=loss,
        title="Cutout",
        about="Cover a random square of every training image.",
        families=frozenset({"occlusion"}),
    )


def hide(x: Images, generator: torch.Generator, side: float) -> Images:
    """Set one square per image to grey.

    >>> x = hide(torch.zeros(50, 1, 32, 32), torch.Generator(), 0.5)
    >>> int((x > 0).sum((1, 2, 3)).max())  # 16 x 16 where it lies inside
    256
    """

    def near(pixels: int) -> Tensor:
        """Mask (N, pixels) of the rows or columns in the square around each image's centre."""
        length = round(side * pixels)
        place = torch.arange(pixels, device=x.device) - randint(pixels, x, len(x), generator=generator)[:, None]
        return (place >= -(length // 2)) & (place < length - length // 2)

    rows, columns = near(x.shape[2]), near(x.shape[3])
    return torch.where((rows[:, :, None] & columns[:, None])[:, None], torch.full_like(x, 0.5), x)
