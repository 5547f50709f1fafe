r"""Proposition 1 as finite sums, and the entropies of predictions on both sides of the paper's "approximately equal".

A deterministic network is a chain of maps X -> Z -> Yhat; with X on finitely many atoms the
proposition :math:`I(X;Z) \geq I(X;\hat Y) = H(\hat Y)` can be computed rather than believed.

Two labels must be distinguished. The *argmax* label is a function of x; the *softmax* label is drawn
from p(. | x). Proposition 1 is about the first, every softmax entropy is about the second.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.special import entr

from meada.errors import MeadaError
from meada.types import Scalar

Law = Float[Tensor, " A"]
JointLaw = Float[Tensor, "A B"]
SUM_TOLERANCE = 1e-2  # wide enough for a softmax in bfloat16, far too narrow for logits


def check_law(p: Tensor, what: str, dims: int = 1, tolerance: float = SUM_TOLERANCE) -> None:
    """The last ``dims`` dimensions of ``p`` hold probabilities that sum to one."""
    if p.numel() == 0:
        raise MeadaError(f"{what} must hold at least one prediction, got none")
    if not bool((p >= 0).all()):  # also catches NaN
        raise MeadaError(f"{what} must be probabilities, got a negative number or NaN (logits need a softmax first)")
    worst = float((p.double().sum(tuple(range(-dims, 0))) - 1).abs().max())
    if not worst <= tolerance:
        raise MeadaError(f"{what} must sum to 1, got sums off by {worst:.3g} (logits need a softmax first)")


def shannon_entropy(p: Law) -> Scalar:
    r"""Entropy of a law on finitely many atoms, :math:`H = -\sum_a p_a \log p_a`, in nats.

    >>> shannon_entropy(torch.tensor([0.5, 0.25, 0.25])) / torch.tensor(2.0).log()  # in bits
    tensor(1.5000)
    """
    check_law(p, "the law")
    return entr(p).sum()


def mutual_information(joint: JointLaw) -> Scalar:
    r"""I(A; B), the KL-divergence of the joint law from the product of its marginals.

    >>> mutual_information(torch.tensor([[0.5, 0.0], [0.0, 0.5]]))  # each determines the other
    tensor(0.6931)
    >>> mutual_information(torch.full((2, 2), 0.25))  # independent
    tensor(0.)
    """
    check_law(joint, "the joint law", dims=2)
    product = joint.sum(1, keepdim=True) * joint.sum(0, keepdim=True)
    return (joint.xlogy(joint) - joint.xlogy(product)).sum()


def conditional_entropy(joint: JointLaw) -> Scalar:
    """H(B | A), the mean over A of the entropy of B's conditional law.

    >>> conditional_entropy(torch.tensor([[0.25, 0.25], [0.5, 0.0]]))  # half of log 2
    tensor(0.3466)
    """
    check_law(joint, "the joint law", dims=2)
    return entr(joint).sum() - entr(joint.sum(1)).sum()


def graph_law(p: Law, image: Int[Tensor, " A"], atoms: int) -> JointLaw:
    """Joint law of A and f(A), where ``image[a]`` is f(a), one of ``atoms`` values.

    >>> graph_law(torch.tensor([0.5, 0.3, 0.2]), torch.tensor([1, 0, 1]), 2)
    tensor([[0.0000, 0.5000],
            [0.3000, 0.0000],
            [0.0000, 0.2000]])
    """
    return torch.zeros(len(p), atoms, dtype=p.dtype).scatter(1, image[:, None], p[:, None])


class Proposition1(NamedTuple):
    """Every quantity of Proposition 1, in nats, in the order in which the paper writes them."""

    i_x_z: float
    i_x_y: float
    h_y: float
    h_y_given_x: float


def proposition_1(p: Law, z: Int[Tensor, " A"], y: Int[Tensor, " Z"], classes: int) -> Proposition1:
    r"""The proposition's terms for the network x -> z[x] -> y[z[x]] on the law ``p`` of X.

    Four inputs, three latent codes, two classes: I(X;Z) = 1.04 is at least I(X;Yhat) = H(Yhat).

    >>> terms = proposition_1(torch.full((4,), 0.25), torch.tensor([0, 1, 1, 2]),
    ...                       torch.tensor([0, 0, 1]), classes=2)
    >>> [round(term, 4) for term in terms]
    [1.0397, 0.5623, 0.5623, 0.0]
    """
    x_z, x_y = graph_law(p, z, len(y)), graph_law(p, y[z], classes)
    return Proposition1(
        i_x_z=float(mutual_information(x_z)),
        i_x_y=float(mutual_information(x_y)),
        h_y=float(shannon_entropy(x_y.sum(0))),
        h_y_given_x=float(conditional_entropy(x_y)),
    )


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
    >>> entropy_gap(torch.full((5, 10), 0.1))  # a constant predictor says nothing about X
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
