"""Empirical entropy: both sides of the paper's "approximately equal", and the gap between them.

Two labels must be distinguished. The *argmax* label is a function of x; the *softmax* label is drawn
from p(. | x). Proposition 1 is about the first, every softmax entropy is about the second.
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.special import entr

from meada.theory._checks import check_law
from meada.types import Scalar

Probabilities = Float[Tensor, "N K"]  # one prediction a row, each row sums to one


def plug_in_entropy(probabilities: Probabilities) -> Scalar:
    r"""Entropy of the mean prediction, the left side: :math:`H(\frac1N \sum_i p(\cdot|x_i))`.

    This is the entropy of the softmax label over the data set, in nats.

    >>> plug_in_entropy(torch.tensor([[1.0, 0.0], [0.0, 1.0]]))  # sure of each, not of both
    tensor(0.6931)
    """
    check_law(probabilities, "probabilities")
    return entr(probabilities.mean(0)).sum()


def mean_prediction_entropy(probabilities: Probabilities) -> Scalar:
    r"""Mean of the predictions' entropies, the right side: :math:`\frac1N \sum_i h(\theta; x_i)`.

    This is the conditional entropy of the softmax label given X, and what the algorithm climbs.

    >>> mean_prediction_entropy(torch.tensor([[0.5, 0.5], [0.0, 1.0]]))  # (log 2 + 0) / 2
    tensor(0.3466)
    """
    check_law(probabilities, "probabilities")
    return entr(probabilities).sum(-1).mean()


def entropy_gap(probabilities: Probabilities) -> Scalar:
    r"""Left side minus right side: the mutual information of X and the softmax label.

    Never negative, since entropy is concave: the right side is a *lower* bound of the left one.

    >>> entropy_gap(torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    tensor(0.6931)
    >>> entropy_gap(torch.full((5, 10), 0.1))  # a constant predictor tells nothing about X
    tensor(0.)
    """
    gap = plug_in_entropy(probabilities) - mean_prediction_entropy(probabilities)
    return gap.clamp(min=0)  # below zero it is rounding


def argmax_entropy(probabilities: Probabilities) -> Scalar:
    r"""Entropy of the argmax label over the data set: the :math:`H(\hat Y)` of Proposition 1.

    A tie goes to the class that torch's argmax names.

    >>> argmax_entropy(torch.tensor([[0.6, 0.4], [0.3, 0.7], [0.9, 0.1], [0.8, 0.2]])).exp()
    tensor(1.7548)
    """
    check_law(probabilities, "probabilities")
    n, classes = probabilities.shape
    counts = torch.bincount(probabilities.argmax(-1), minlength=classes)
    return entr(counts.to(probabilities.dtype) / n).sum()
