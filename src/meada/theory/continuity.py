"""How much an entropy changes when a distribution changes a little; Prop. 3 and Corollary 1 use it."""

import math

from meada.theory._checks import Real, check_between, check_count


def binary_entropy(p: Real) -> float:
    r"""Entropy of a coin, :math:`-p \log p - (1 - p) \log (1 - p)`, in nats.

    >>> round(binary_entropy(0.5), 6)
    0.693147
    """
    check_between(p, 0, 1, "p")
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
    check_between(distance, 0, 1, "the total variation")
    classes = check_count(classes, "classes")
    if classes == 1:
        return 0.0
    d = min(distance, 1 - 1 / classes)  # further away there is nothing more to gain
    return binary_entropy(d) + d * math.log(classes - 1)
