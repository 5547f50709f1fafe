"""h(theta; x): how unsure the model is of its own prediction."""

from jaxtyping import Float
from torch import Tensor

from meada.types import Logits, PerSample


def softmax_entropy(logits: Logits) -> PerSample:
    r"""Entropy of one prediction, :math:`h = -\sum_k p_k \log p_k`, in nats.

    >>> import torch
    >>> softmax_entropy(torch.zeros(1, 10)).exp()  # uniform over ten classes
    tensor([10.0000])
    """
    log_p = logits.log_softmax(-1)
    return -(log_p.exp() * log_p).sum(-1)


def expected_entropy(logits: Float[Tensor, "S B K"]) -> PerSample:
    r"""The Bayesian variant's :math:`\bar h = \frac1S \sum_s h(\theta_s; x)` over weight draws.

    >>> import torch
    >>> expected_entropy(torch.zeros(3, 1, 10)).exp()
    tensor([10.0000])
    """
    log_p = logits.log_softmax(-1)
    return -(log_p.exp() * log_p).sum(-1).mean(0)
