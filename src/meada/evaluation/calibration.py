"""Whether a network's confidence can be believed."""

import torch
from torch.nn.functional import cross_entropy, one_hot

from meada.types import Labels, Logits


def negative_log_likelihood(logits: Logits, labels: Labels) -> float:
    return float(cross_entropy(logits.double(), labels))


def brier(logits: Logits, labels: Labels) -> float:
    """Mean squared distance of the prediction from the truth, summed over classes.

    >>> brier(torch.zeros(1, 2), torch.tensor([0]))
    0.5
    """
    p = logits.double().softmax(-1)
    return float((p - one_hot(labels, p.shape[-1])).square().sum(-1).mean())


def expected_calibration_error(logits: Logits, labels: Labels, bins: int = 15) -> float:
    """Mean gap of confidence and accuracy over equally wide bins of confidence, in [0, 1].

    >>> logits = torch.tensor([[0.0, 0.0], [0.0, 0.0]])  # half sure of class 0, right half the time
    >>> expected_calibration_error(logits, torch.tensor([0, 1]))
    0.0
    """
    confidence, guess = logits.double().softmax(-1).max(-1)
    right = (guess == labels).double()
    # Bins are (a, b]: a confidence of exactly 1 falls into the last one.
    which = (confidence * bins).ceil().long().clamp(1, bins) - 1
    gap = torch.zeros(bins, dtype=torch.float64).index_add_(0, which, confidence - right)
    return float(gap.abs().sum() / len(labels))
