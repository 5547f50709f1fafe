"""Objective of the maximisation phase: CE + beta * h - gamma * c, one value per sample."""

from dataclasses import dataclass

from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from meada.entropy import bernoulli_entropy, softmax_entropy
from meada.transport import semantic_cost
from meada.types import Embedding, LabelMatrix, Labels, Logits, PerSample


@dataclass(frozen=True, kw_only=True)
class Objective:
    """The robust surrogate of Proposition 2. ``beta=0`` is ADA; ``beta>0`` is ME-ADA.

    >>> import torch
    >>> z = torch.zeros(1, 4)
    >>> Objective(beta=1.0, gamma=1.0)(torch.zeros(1, 10), z, z, torch.tensor([3]))  # 2 log 10
    tensor([4.6052])
    """

    beta: float
    gamma: float

    def __call__(self, logits: Logits, z: Embedding, z0: Embedding, y: Labels | LabelMatrix) -> PerSample:
        several = y.ndim == 2  # labels that are independent of each other
        ce = bernoulli_cross_entropy(logits, y) if several else cross_entropy(logits, y, reduction="none")
        h = bernoulli_entropy(logits) if several else softmax_entropy(logits)
        c = semantic_cost(z, z0)
        return ce + self.beta * h - self.gamma * c


def bernoulli_cross_entropy(logits: Logits, y: LabelMatrix) -> PerSample:
    """Sum of the binary cross-entropies of independent labels."""
    return binary_cross_entropy_with_logits(logits, y.to(logits), reduction="none").sum(-1)
