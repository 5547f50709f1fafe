"""Loss, correctness and entropy for one class per picture or for several independent labels (multi-label).

Multi-label: the likelihood is a product of Bernoulli distributions. The loss is the sum of their cross-entropies, h the
sum of their entropies, and for scores each (picture, label) pair is a classification into two classes.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from meada.objective import bernoulli_cross_entropy
from meada.types import LabelMatrix, Labels, Logits, PerSample, Scalar

Truth = Labels | LabelMatrix  # class numbers (B,), or 0.0 and 1.0 by label (B, K)


def loss(logits: Logits, y: Truth) -> Scalar:
    """Negative log-likelihood, averaged over pictures."""
    return cross_entropy(logits, y) if y.ndim == 1 else bernoulli_cross_entropy(logits, y).mean()


def right(logits: Logits, y: Truth) -> PerSample:
    """Correctness: 1 for a correct class, else 0; multi-label: the share of correct labels.

    >>> right(torch.tensor([[2.0, -1.0, -1.0, 1.0]]), torch.tensor([[1.0, 0.0, 1.0, 1.0]]))
    tensor([0.7500], dtype=torch.float64)
    """
    return (logits.argmax(-1) == y).double() if y.ndim == 1 else ((logits > 0) == (y > 0)).double().mean(-1)


def accuracy(logits: Logits, y: Truth) -> float:
    return 100 * float(right(logits, y).mean())


def chance(y: Truth) -> float:
    """Accuracy (%) of always predicting the most frequent class.

    >>> chance(torch.tensor([0, 0, 0, 1])), chance(torch.tensor([[1.0, 0.0], [1.0, 0.0]]))
    (75.0, 100.0)
    """
    share = y.bincount().max() / len(y) if y.ndim == 1 else torch.maximum(y.mean(0), 1 - y.mean(0)).mean()
    return 100 * float(share)


def as_classes(logits: Logits, y: Truth) -> tuple[Tensor, Tensor]:
    """Unchanged for one class per picture; multi-label: one two-class problem ("no", "yes") per label."""
    if y.ndim == 1:
        return logits, y
    yes = logits.flatten()
    return torch.stack([torch.zeros_like(yes), yes], 1), y.flatten().long()


def names_of(y: Tensor, classes: Sequence[str]) -> str:
    """The class of one picture, or its labels."""
    if y.ndim == 0:
        return classes[int(y)]
    return ", ".join(classes[k] for k in y.nonzero().flatten().tolist()) or "none"


def one_of_each(labels: Labels) -> Tensor:
    """Positions of the first picture of each class, then of the second, and so on.

    >>> one_of_each(torch.tensor([0, 0, 1]))
    tensor([0, 2, 1])
    """
    by_class = labels.argsort(stable=True)
    ordered = labels[by_class]
    rank = torch.arange(len(labels)) - torch.searchsorted(ordered, ordered)  # within its class
    return by_class[rank.argsort(stable=True)]
