r"""Bounds on entropies: how much they change with the distribution, and how far an estimate is from the truth.

The first is Corollary 1 with its lemmas. The second is Proposition 3 for N samples, with the number of samples that a
given error needs; the estimate is the entropy of the *mean* prediction (``plug_in_entropy``) of a *fixed* network.
"""

import math
from decimal import Decimal, localcontext
from operator import index

from meada.errors import MeadaError, check_range
from meada.theory.information import Probabilities, check_law
from meada.types import Scalar

Real = float | int  # beartype distinguishes int from float
LAST_RISE = 8  # the bound of Proposition 3 falls from n = e^2 = 7.39 on, at the latest


def binary_entropy(p: Real) -> float:
    r"""Entropy of a coin, :math:`-p \log p - (1 - p) \log (1 - p)`, in nats.

    >>> round(binary_entropy(0.5), 6)
    0.693147
    """
    check_range("binary_entropy", "[0, 1]", p=p)
    return -sum(q * math.log(q) for q in (p, 1 - p) if q > 0)


def term_change_bound(m: int) -> float:
    r"""The supplement's first inequality, restricted to the range in which it holds.

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
    r"""The sharp form of the bound in Corollary 1 and Lemma 3 (Fano's inequality).

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


def deviation_from_mean_bound(n: int, classes: int, delta: Real) -> float:
    r"""Lemma 1: :math:`|\hat H - E\hat H|` stays below this with probability 1 - delta.

    McDiarmid's inequality for a function that one sample moves by :math:`K \log(n) / n` at most.
    Needs n >= 2: at n = 1 the printed bound is 0, which is false.

    >>> round(deviation_from_mean_bound(10_000, 10, 0.05), 4)
    1.2509
    """
    n, classes = check_count(n, "n", least=2), check_count(classes, "classes")
    check_range("Proposition 3", "(0, 1)", delta=delta)
    return classes * math.log(n) * math.sqrt(math.log(2 / delta)) / math.sqrt(2 * n)


def bias_bound(n: int, classes: int) -> float:
    r"""Lemma 2: :math:`0 \leq H - E\hat H \leq \log(1 + (K - 1) / n)`.

    Reached at n = 1 by the uniform law, where one drawn label always has entropy 0.

    >>> round(bias_bound(1, 10), 6), round(math.log(10), 6)
    (2.302585, 2.302585)
    """
    n, classes = check_count(n, "n"), check_count(classes, "classes")
    return math.log1p((classes - 1) / n)


def entropy_deviation_bound(n: int, classes: int, delta: Real) -> float:
    r"""Proposition 3: :math:`|H - \hat H|` stays below this with probability 1 - delta, in nats.

    :math:`|Y| \log(N) \sqrt{\log(2/\delta)} / \sqrt{2N} + (|Y| - 1) / N`, rounded once.

    >>> round(entropy_deviation_bound(10_000, 10, 0.05), 4)  # MNIST's first 10,000; log 10 = 2.3026
    1.2518
    >>> round(entropy_deviation_bound(50_000, 100, 0.05), 4)  # CIFAR-100; log 100 = 4.6052
    6.5735
    """
    n, classes = check_count(n, "n"), check_count(classes, "classes")
    check_range("Proposition 3", "(0, 1)", delta=delta)
    return _bound(n, classes, delta)


def samples_needed(error: Real, classes: int, delta: Real) -> int:
    """Inverse of the bound: the smallest n from which on it is at most ``error``.

    The bound rises and then falls, so a tiny n at which it happens to be small does not count.
    Where neighbouring n share one float64 (n above 1e15 or so) the first of them is meant.

    >>> samples_needed(0.1, 10, 0.05)
    4303726
    >>> [entropy_deviation_bound(n, 10, 0.05) <= 0.1 for n in (4_303_725, 4_303_726)]
    [False, True]
    >>> entropy_deviation_bound(1, 2, 0.01), samples_needed(1.0, 2, 0.01)  # n = 1 does not count
    (1.0, 374)
    """
    classes = check_count(classes, "classes")
    check_range("Proposition 3", "(0, 1)", delta=delta)
    check_range("samples_needed", "(0, inf]", error=error)
    peak = max(range(1, LAST_RISE + 1), key=lambda n: _bound(n, classes, delta))
    if _bound(peak, classes, delta) <= error:
        return 1
    above, enough = peak, 2 * peak
    while _bound(enough, classes, delta) > error:
        above, enough = enough, 2 * enough
    while enough - above > 1:
        middle = (above + enough) // 2
        above, enough = (above, middle) if _bound(middle, classes, delta) <= error else (middle, enough)
    return enough


def replacement_bound(n: int, classes: int) -> float:
    r"""Largest change of :math:`\hat H` when one of n samples is replaced (attained).

    The supplement takes :math:`K \log(n) / n`, as if every class moved by 1/n at once.

    >>> round(replacement_bound(100, 10), 4), round(10 * math.log(100) / 100, 4)
    (0.078, 0.4605)
    """
    return entropy_continuity(1 / check_count(n, "n"), classes)


def sharper_deviation_bound(n: int, classes: int, delta: Real) -> float:
    r"""Proposition 3 with the exact replacement and the logarithm of Lemma 2 kept.

    :math:`\sqrt{n \log(2/\delta) / 2}` times ``replacement_bound``, plus ``bias_bound``: it grows
    as log K instead of K, and says the same thing with the same confidence.

    >>> round(sharper_deviation_bound(10_000, 10, 0.05), 4)  # the printed bound says 1.2518
    0.1694
    """
    n = check_count(n, "n")
    check_range("Proposition 3", "(0, 1)", delta=delta)
    spread = math.sqrt(n * math.log(2 / delta) / 2)
    return spread * replacement_bound(n, classes) + bias_bound(n, classes)


def mean_entropy_deviation_bound(n: int, classes: int, delta: Real) -> float:
    r"""The same bound for the mean prediction entropy, which Proposition 3 does not cover.

    Hoeffding's inequality for n values of h in [0, log K]; a mean has no bias.

    >>> round(mean_entropy_deviation_bound(10_000, 10, 0.05), 4)
    0.0313
    """
    n, classes = check_count(n, "n"), check_count(classes, "classes")
    check_range("Proposition 3", "(0, 1)", delta=delta)
    return math.log(classes) * math.sqrt(math.log(2 / delta) / (2 * n))


def _bound(n: int, classes: int, delta: Real) -> float:
    # Rounded once, from more digits than n has: so the floats fall with n as the real numbers do,
    # and a bisection over them is exact however large n is.
    with localcontext(prec=40 + n.bit_length() // 3):
        N, Y, d = Decimal(n), Decimal(classes), Decimal(delta)
        return float(Y * N.ln() * (2 / d).ln().sqrt() / (2 * N).sqrt() + (Y - 1) / N)


def check_count(value: int, what: str, least: int = 1) -> int:
    """``value`` as a Python integer, at least ``least``."""
    count = index(value)  # a numpy integer is welcome, 3.5 is a TypeError
    if count < least:
        raise MeadaError(f"{what} must be at least {least}, got {count}")
    return count
