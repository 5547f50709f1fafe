r"""Proposition 3: how far :math:`\hat H(Y)` of N samples may be from H(Y), and how many samples are needed.

:math:`\hat H` is the entropy of the *mean* prediction (``plug_in_entropy``) of a *fixed* network.
"""

import math
from decimal import Decimal, localcontext

from meada.errors import check_range
from meada.theory._checks import Real, check_count
from meada.theory.continuity import entropy_continuity

LAST_RISE = 8  # the bound falls from n = e^2 = 7.39 on, at the latest


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
    """The inverse: the smallest n such that the bound is at most ``error`` there and ever after.

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
    r"""The most that :math:`\hat H` can move when one of n samples is replaced (it is reached).

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
    r"""The same promise for the mean prediction entropy, which Proposition 3 does not speak of.

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
