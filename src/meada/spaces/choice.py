"""The tilted choice: keep one of k candidates at random; a higher score makes a candidate more likely."""

from typing import Any

import numpy as np


def choose(scores: Any, hardness: float, noise: Any) -> Any:
    """Index of the chosen one of k candidates for each sample: a draw from softmax(scores / tau).

    Args:
        scores: (N, k).
        hardness: sets tau per sample, see :func:`inverse_temperature`.
        noise: (N, k) standard Gumbel numbers; the arg-max of scores / tau + noise is a draw from the softmax.

    >>> choose(np.array([[0.0, 2.0, 1.0]]), 1.0, np.zeros((1, 3)))  # the hardest
    array([1])
    """
    scores, noise = np.asarray(scores, dtype=np.float64), np.asarray(noise, dtype=np.float64)
    best = scores.max(1, keepdims=True)
    inverse = inverse_temperature(scores, hardness)[:, None]
    exact = np.isinf(inverse)  # tau = 0: the best, and the noise decides between equals
    tilted = np.where(exact, np.where(scores == best, 0.0, -np.inf), (scores - best) * np.where(exact, 0, inverse))
    return (tilted + noise).argmax(1)


def inverse_temperature(scores: Any, hardness: float) -> Any:
    r"""1 / tau per sample such that :math:`KL(p \| uniform) = hardness * \log k` for p = softmax(scores / tau).

    Infinite where the ``m`` best candidates are equal and :math:`m \ge k^{1 - hardness}`.

    >>> p = np.exp(np.array([0.0, 1.0]) * inverse_temperature(np.array([[0.0, 1.0]]), 0.5))
    >>> p = p / p.sum()
    >>> round(float(1 + (p * np.log2(p)).sum()), 6)  # KL from the uniform choice, in units of log k
    0.5
    """
    scores = np.asarray(scores, dtype=np.float64)
    n, k = scores.shape
    gaps = scores - scores.max(1, keepdims=True)
    width = -gaps.min(1)
    wanted = (1 - hardness) * np.log(k)  # entropy of the choice
    exact = (np.log((gaps == 0).sum(1)) >= wanted) | (width == 0)
    if hardness == 0:
        return np.zeros(n)
    unit = gaps / np.where(width > 0, width, 1)[:, None]
    low, high = np.full(n, -30.0), np.full(n, 45.0)  # log of 1 / tau in units of the scores' range
    for _ in range(64):
        middle = (low + high) / 2
        flat = _entropy(unit * np.exp(middle)[:, None]) > wanted
        low, high = np.where(flat, middle, low), np.where(flat, high, middle)
    return np.where(exact, np.inf, np.exp((low + high) / 2) / np.where(width > 0, width, 1))


def _entropy(logits: Any) -> Any:
    """Entropy of softmax(logits); the largest logit is 0."""
    p = np.exp(logits)
    total = p.sum(1)
    return np.log(total) - (p * logits).sum(1) / total
