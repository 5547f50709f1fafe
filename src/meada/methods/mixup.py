"""Mixup (Zhang et al., 2018): train on weighted means of two images and of their labels."""

from torch import nn
from torch.nn.functional import cross_entropy

from meada.errors import check_range
from meada.images.random_ops import beta, shuffle
from meada.methods.method import Context, Method
from meada.types import Batch, Labels, Logits, Scalar


def mixup(*, alpha: float = 1.0) -> Method:
    """Blend each image with another of its batch; one lambda ~ Beta(alpha, alpha) per step.

    ``alpha`` is 1 as the paper has it for CIFAR.
    """
    check_range("mixup", "(0, inf)", alpha=alpha)

    def loss(net: nn.Module, batch: Batch, context: Context) -> Scalar:
        share, partner = beta(alpha, context.generator), shuffle(batch.x, context.each)
        x = share * batch.x + (1 - share) * batch.x[partner]
        return shared_loss(net(x), batch.y, batch.y[partner], share)

    return Method(
        loss=loss,
        title="Mixup",
        about="Train on weighted means of two images and of their labels.",
    )


def shared_loss(logits: Logits, y: Labels, other: Labels, share: float) -> Scalar:
    """Cross-entropy with the mixed label: weight ``share`` on ``y``, the rest on ``other``."""
    return share * cross_entropy(logits, y) + (1 - share) * cross_entropy(logits, other)
