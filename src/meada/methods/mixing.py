"""Mixup, CutMix and Cutout: blend an image with another, paste a part of another into it, or cover a part of it."""

import math
from functools import partial

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from meada.errors import check_range
from meada.images.random_ops import beta, randint, shuffle, uniform
from meada.methods.method import Context, Method, cross_entropy_loss
from meada.types import Batch, Images, Labels, Logits, Scalar


def mixup(*, alpha: float = 1.0) -> Method:
    """Zhang et al., 2018: each image blended with another of its batch; one share lambda ~ Beta(alpha, alpha) a step.

    ``alpha`` is 1 as the paper has it for CIFAR.
    """
    check_range("mixup", "(0, inf)", alpha=alpha)
    return Method(
        loss=partial(mixed_loss, alpha=alpha),
        title="Mixup",
        about="Train on weighted means of two images and of their labels.",
    )


def mixed_loss(net: nn.Module, batch: Batch, context: Context, *, alpha: float) -> Scalar:
    share, partner = beta(alpha, context.generator), shuffle(batch.x, context.each)
    x = share * batch.x + (1 - share) * batch.x[partner]
    return shared_loss(net(x), batch.y, batch.y[partner], share)


def shared_loss(logits: Logits, y: Labels, other: Labels, share: float) -> Scalar:
    """Cross-entropy to a label that is ``y`` by ``share`` and ``other`` by the rest."""
    return share * cross_entropy(logits, y) + (1 - share) * cross_entropy(logits, other)


def cutmix(*, alpha: float = 1.0, probability: float = 0.5) -> Method:
    """Yun et al., 2019: the rectangle covers 1 - lambda of the image, lambda ~ Beta(alpha, alpha), one place a step.

    ``probability`` is how often a step does so: 0.5 in the authors' settings for CIFAR (1 on ImageNet). ``alpha`` is 1
    in both.
    """
    check_range("cutmix", "(0, inf)", alpha=alpha)
    check_range("cutmix", "[0, 1]", probability=probability)
    return Method(
        loss=partial(pasted_loss, alpha=alpha, probability=probability),
        title="CutMix",
        about="Paste a rectangle of another image into each one, and share the label by area.",
        families=frozenset({"occlusion"}),
    )


def pasted_loss(net: nn.Module, batch: Batch, context: Context, *, alpha: float, probability: float) -> Scalar:
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


def hole(centre: int, side: int, share: float) -> slice:
    """Sqrt(1 - share) of the side about the centre, as far as it lies in the image.

    >>> hole(16, 32, 0.75), hole(2, 32, 0.75)
    (slice(8, 24, None), slice(0, 10, None))
    """
    half = int(side * math.sqrt(1 - share)) // 2
    return slice(max(centre - half, 0), min(centre + half, side))


def cutout(*, side: float = 0.5) -> Method:
    """DeVries and Taylor, 2017: a square of ``side`` times the image's (16 of 32 pixels) about a random pixel of each.

    It may reach over the edge. What is hidden is mid-grey, which the networks' normalisation, (x - 0.5) / 0.5, turns
    into the zero that the authors fill with.
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
    """Grey out one square an image.

    >>> x = hide(torch.zeros(50, 1, 32, 32), torch.Generator(), 0.5)
    >>> int((x > 0).sum((1, 2, 3)).max())  # 16 x 16 where it lies inside
    256
    """
    n, _, h, w = x.shape
    rows, columns = (_within(randint(k, x, n, generator=generator), k, round(side * k)) for k in (h, w))
    return torch.where((rows[:, :, None] & columns[:, None])[:, None], torch.full_like(x, 0.5), x)


def _within(centre: torch.Tensor, side: int, length: int) -> torch.Tensor:
    """(N, side): which pixels lie within ``length`` about each centre."""
    place = torch.arange(side, device=centre.device) - centre[:, None]
    return (place >= -(length // 2)) & (place < length - length // 2)
