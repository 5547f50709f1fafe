"""Entropy of predictions, h(theta; x): how unsure the model is."""

from collections.abc import Callable
from math import log
from typing import Literal

from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import logsigmoid

from meada.types import Logits, PerSample


def softmax_entropy(logits: Logits) -> PerSample:
    r"""Entropy of one prediction, :math:`h = -\sum_k p_k \log p_k`, in nats.

    >>> import torch
    >>> softmax_entropy(torch.zeros(1, 10)).exp()  # uniform over ten classes
    tensor([10.0000])
    """
    log_p = logits.log_softmax(-1)
    return -(log_p.exp() * log_p).sum(-1)


def bernoulli_entropy(logits: Logits) -> PerSample:
    r"""Entropy of independent labels: :math:`h = \sum_k h(p_k)` of Bernoulli laws with :math:`p_k = \sigma(logit_k)`.

    >>> import torch
    >>> bernoulli_entropy(torch.zeros(1, 3)).exp()  # eight sets of three labels, equally likely
    tensor([8.])
    """
    p = logits.sigmoid()
    return -(p * logsigmoid(logits) + (1 - p) * logsigmoid(-logits)).sum(-1)


def expected_entropy(logits: Float[Tensor, "S B K"]) -> PerSample:
    r"""The Bayesian variant's :math:`\bar h = \frac1S \sum_s h(\theta_s; x)` over weight draws.

    >>> import torch
    >>> expected_entropy(torch.zeros(3, 1, 10)).exp()
    tensor([10.0000])
    """
    log_p = logits.log_softmax(-1)
    return -(log_p.exp() * log_p).sum(-1).mean(0)


def entropy_of_mean(logits: Float[Tensor, "S B K"]) -> PerSample:
    r"""Entropy of the mean prediction, :math:`h(\frac1S \sum_s p(\theta_s; x))`.

    Above the expected entropy by the mutual information of label and weights: two draws that are
    sure of different classes have an expected entropy of 0, and an entropy of the mean of log 2.

    >>> import torch
    >>> apart = torch.tensor([[[60.0, 0.0]], [[0.0, 60.0]]])
    >>> entropy_of_mean(apart), expected_entropy(apart).round(decimals=4)
    (tensor([0.6931]), tensor([0.]))
    """
    log_p = logits.log_softmax(-1).logsumexp(0) - log(len(logits))
    return -(log_p.exp() * log_p).sum(-1)


Uncertainty = Literal["expected", "of_mean"]
UNCERTAINTY: dict[str, Callable[[Float[Tensor, "S B K"]], PerSample]] = {
    "expected": expected_entropy,  # the supplement's
    "of_mean": entropy_of_mean,
}
