r"""How much an entropy changes when a distribution changes a little; Corollary 1, and part of Proposition 3."""

import math

from meada.errors import check_range
from meada.theory._checks import Real, check_count, check_law
from meada.theory.information import Probabilities
from meada.types import Scalar


def binary_entropy(p: Real) -> float:
    r"""Entropy of a coin, :math:`-p \log p - (1 - p) \log (1 - p)`, in nats.

    >>> round(binary_entropy(0.5), 6)
    0.693147
    """
    check_range("binary_entropy", "[0, 1]", p=p)
    return -sum(q * math.log(q) for q in (p, 1 - p) if q > 0)


def term_change_bound(m: int) -> float:
    r"""The supplement's first inequality, with the range in which it is true.

    For a and a + Delta in [0, 1] with :math:`|\Delta| \leq 1/m`, the largest value of
    :math:`|(a + \Delta) \log (a + \Delta) - a \log a|` is :math:`\log(m) / m` for m >= 3, reached
    at a = 0, Delta = 1/m. For m = 1 and 2 the printed value is too small: the largest one is 1/e.

    >>> round(term_change_bound(10), 6)
    0.230259
    >>> round(term_change_bound(2), 6), round(math.log(2) / 2, 6)
    (0.367879, 0.346574)
    """
    m = check_count(m, "m")
    return math.log(m) / m if m >= 3 else 1 / math.e


def entropy_continuity(distance: Real, classes: int) -> float:
    r"""Largest :math:`|H(p) - H(q)|` between laws on ``classes`` atoms with total variation <= d.

    :math:`H_2(d) + d \log(K - 1)` up to d = 1 - 1/K, where it reaches log K (Zhang 2007; Audenaert
    2007). Total variation is *half* of the 1-norm. Sharp: a sure law against one that leaves
    it with probability d, uniformly over the other classes.

    >>> round(entropy_continuity(0.5, 2), 6)
    0.693147
    """
    check_range("entropy_continuity", "[0, 1]", distance=distance)
    classes = check_count(classes, "classes")
    if classes == 1:
        return 0.0
    d = min(distance, 1 - 1 / classes)  # further away there is nothing more to gain
    return binary_entropy(d) + d * math.log(classes - 1)


def conditional_entropy_difference_bound(epsilon: Real, classes: int) -> float:
    r"""Lemma 3: :math:`|H(p(Y|X)) - H(\tilde p(Y|X))| \leq -\epsilon \log(\epsilon / K^3)`.

    For two joint laws with the same marginal of X and :math:`|p - \tilde p|_1 \leq \epsilon`,
    epsilon in [0, 1/2]; the 1-norm sums absolute differences (twice the total variation).

    >>> round(conditional_entropy_difference_bound(0.1, 10), 6)
    0.921034
    """
    check_range("Lemma 3", "[0, 0.5]", epsilon=epsilon)
    classes = check_count(classes, "classes")
    if epsilon == 0:
        return 0.0
    return epsilon * (3 * math.log(classes) - math.log(epsilon))


def conditional_entropy_bound(epsilon: Real, classes: int) -> float:
    r"""Corollary 1: :math:`H(\tilde p(Y|X)) \leq -\epsilon \log(\epsilon / K^3)`, in nats.

    Lemma 3 next to a law under which Y = f(X), whose conditional entropy is 0. Valid for epsilon in [0, 1/2].

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
    check_range("sharp_conditional_entropy_bound", "[0, 2]", epsilon=epsilon)
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
