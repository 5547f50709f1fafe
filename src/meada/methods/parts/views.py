"""Losses over several views of a batch, computed in one forward pass."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from meada.methods.method import Context
from meada.spaces import Random, Space, view_random
from meada.types import Batch, Images, Logits, Scalar


def sample_index(batch: Batch) -> Any:
    """Indices that key the random numbers of a batch's samples."""
    return np.arange(len(batch.x)) if batch.sample_index is None else batch.sample_index.cpu().numpy()


def batch_random(batch: Batch, context: Context, candidate: int = 0) -> Random:
    """Random numbers of a batch's views at this step."""
    return view_random(context.seed, context.step, candidate, sample_index(batch))


def random_views_loss(
    net: nn.Module, batch: Batch, context: Context, *, space: Space, views: int, clean: bool, consistency: float
) -> Scalar:
    """``views_loss`` of ``views`` random views, optionally after the ``clean`` image; the first is labelled."""
    made = [space.view(batch.x, batch_random(batch, context, j), context.step) for j in range(views)]
    return views_loss(net, batch, [batch.x, *made] if clean else made, labelled=1, consistency=consistency)


def views_loss(net: nn.Module, batch: Batch, views: Sequence[Images], *, labelled: int, consistency: float) -> Scalar:
    """Mean cross-entropy of the first ``labelled`` views plus ``consistency`` times the divergence of all.

    One forward pass over all views, so that batch norm sees them together.
    """
    logits = net(torch.cat(list(views))).chunk(len(views))
    ce = sum((cross_entropy(one, batch.y) for one in logits[:labelled]), batch.x.new_zeros(())) / labelled
    return ce + consistency * divergence(*logits) if consistency else ce


def divergence(*views: Logits) -> Scalar:
    r"""Jensen-Shannon: :math:`\frac1V \sum_v KL(p_v \| \bar p)`, averaged over the batch, in nats.

    >>> sure = torch.tensor([[100.0, 0.0]])
    >>> divergence(sure, sure.flip(1)).exp()  # two predictions without overlap: log 2
    tensor(2.)
    """
    log_p = torch.stack([logits.log_softmax(-1) for logits in views])
    log_mean = log_p.exp().mean(0).clamp(min=1e-7).log()
    return (log_p.exp() * (log_p - log_mean)).sum(-1).mean()
