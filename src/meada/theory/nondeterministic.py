r"""Corollary 1: a label that is almost a function of X has almost no conditional entropy."""

import math

from meada.theory._checks import Real, check_between, check_count, check_law
from meada.theory.continuity import entropy_continuity
from meada.theory.entropy_estimate import Probabilities
from meada.types import Scalar


def conditional_entropy_difference_bound(epsilon: Real, classes: int) -> float:
    r"""Lemma 3: :math:`|H(p(Y|X)) - H(\tilde p(Y|X))| \leq -\epsilon \log(\epsilon / K^3)`.

    For two joint laws with the same marginal of X and :math:`|p - \tilde p|_1 \leq \epsilon`,
    epsilon in [0, 1/2]; the 1-norm sums absolute differences (twice the total variation).

    >>> round(conditional_entropy_difference_bound(0.1, 10), 6)
    0.921034
    """
    check_between(epsilon, 0, 0.5, "epsilon")
    classes = check_count(classes, "classes")
    if epsilon == 0:
        return 0.0
    return epsilon * (3 * math.log(classes) - math.log(epsilon))


def conditional_entropy_bound(epsilon: Real, classes: int) -> float:
    r"""Corollary 1: :math:`H(\tilde p(Y|X)) \leq -\epsilon \log(\epsilon / K^3)`, in nats.

    Lemma 3 next to a law under which Y = f(X), whose conditional entropy is 0.
    Valid for epsilon in [0, 1/2].

    >>> round(conditional_entropy_bound(0.1, 10), 6)  # 0.1 * log(10,000)
    0.921034
    >>> conditional_entropy_bound(0.0, 10)
    0.0
    """
    return conditional_entropy_difference_bound(epsilon, classes)


def sharp_conditional_entropy_bound(epsilon: Real, classes: int) -> float:
    r"""The least number that Corollary 1 and Lemma 3 could print (Fano's inequality).

    :math:`H_2(\epsilon/2) + (\epsilon/2) \log(K - 1)`: reached when every x errs with probability
    epsilon/2, uniformly over the other classes. Valid for every 1-norm, 0 to 2.

    >>> round(sharp_conditional_entropy_bound(0.1, 10), 6)  # the printed bound says 0.921034
    0.308376
    """
    check_between(epsilon, 0, 2, "epsilon")
    return entropy_continuity(epsilon / 2, classes)


def distance_to_deterministic(probabilities: Probabilities) -> Scalar:
    r"""The smallest epsilon of Corollary 1 for the softmax label: :math:`2 \cdot (1 - \max_k p_k)`.

    The mean is over the data set; the nearest deterministic label is the argmax.

    >>> import torch
    >>> distance_to_deterministic(torch.tensor([[0.9, 0.1], [0.0, 1.0]]))
    tensor(0.1000)
    """
    check_law(probabilities, "probabilities")
    return 2 * (1 - probabilities.amax(-1)).mean()
