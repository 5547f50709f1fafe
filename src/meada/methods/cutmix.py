"""CutMix (Yun et al., 2019): paste a rectangle of one image into another; mix the labels by area."""

import math

from torch import nn

from meada.errors import check_range
from meada.images.random_ops import beta, randint, shuffle, uniform
from meada.methods.method import Context, Method, cross_entropy_loss
from meada.methods.mixup import shared_loss
from meada.types import Batch, Scalar


def cutmix(*, alpha: float = 1.0, probability: float = 0.5) -> Method:
    """The rectangle covers 1 - lambda of the image, lambda ~ Beta(alpha, alpha), one place a step.

    ``probability`` is how often a step does so: 0.5 in the authors' settings for CIFAR (1 on
    ImageNet). ``alpha`` is 1 in both.
    """
    check_range("cutmix", "(0, inf)", alpha=alpha)
    check_range("cutmix", "[0, 1]", probability=probability)

    def loss(net: nn.Module, batch: Batch, context: Context) -> Scalar:
        generator = context.generator
        if float(uniform(batch.x, 1, generator=generator)) >= probability:
            return cross_entropy_loss(net, batch, context)
        x, (h, w) = batch.x.clone(), batch.x.shape[2:]
        share, partner = beta(alpha, generator), shuffle(x, context.each)
        row, column = (int(randint(k, batch.y, 1, generator=generator)) for k in (h, w))
        rows, columns = hole(row, h, share), hole(column, w, share)
        x[:, :, rows, columns] = batch.x[partner][:, :, rows, columns]
        pasted = (rows.stop - rows.start) * (columns.stop - columns.start) / (h * w)
        return shared_loss(net(x), batch.y, batch.y[partner], 1 - pasted)

    return Method(
        loss=loss,
        title="CutMix",
        about="Paste a rectangle of another image into each one, and share the label by area.",
        families=frozenset({"occlusion"}),
    )


def hole(centre: int, side: int, share: float) -> slice:
    """The rectangle around the centre with sqrt(1 - share) of each side, clipped to the image.

    >>> hole(16, 32, 0.75), hole(2, 32, 0.75)
    (slice(8, 24, None), slice(0, 10, None))
    """
    half = int(side * math.sqrt(1 - share)) // 2
    return slice(max(centre - half, 0), min(centre + half, side))
