r"""The tilted score: from the mean over a prior to the worst case, by one temperature (not in the paper).

For a prior pi over finitely many transformations and scores s, the value of the inner maximisation is

.. math:: \phi_\tau = \sup_Q \{ E_Q[s] - \tau KL(Q \| \pi) \} = \tau \log E_\pi \exp(s / \tau)
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from meada.errors import check_range
from meada.theory.information import check_law

Scores = Float[Tensor, " n"]
Law = Float[Tensor, " n"]  # probabilities that sum to one
PRIOR_TOLERANCE = 1e-5  # a prior is written down in float32, not the output of a network in half precision


def tilted_value(scores: Scores, prior: Law, tau: float) -> float:
    r""":math:`\tau \log \sum_i \pi_i \exp(s_i / \tau)`; the maximum at tau = 0, the mean at infinity.

    >>> s, prior = torch.tensor([0.0, 1.0]), torch.tensor([0.5, 0.5])
    >>> [round(tilted_value(s, prior, tau), 4) for tau in (0.0, 1.0, math.inf)]
    [1.0, 0.6201, 0.5]
    """
    check_range("the tilted score", "[0, inf]", tau=tau)
    check_law(prior, "the prior", tolerance=PRIOR_TOLERANCE)
    held, pi = scores[prior > 0].double(), prior[prior > 0].double()
    best = held.max()
    if tau == 0:
        return float(best)
    if math.isinf(tau):
        return float((pi * held).sum())
    inside = torch.expm1((held - best) / tau)  # a plain exponential overflows or rounds away where tau is tiny or huge
    return float(best + tau * torch.log1p((pi * inside).sum()))


def tilted_law(scores: Scores, prior: Law, tau: float) -> Law:
    r"""The law that attains the supremum, :math:`q_i \propto \pi_i \exp(s_i / \tau)`.

    >>> tilted_law(torch.tensor([0.0, 1.0]), torch.tensor([0.5, 0.5]), 0.0)
    tensor([0., 1.])
    """
    check_range("the tilted score", "[0, inf]", tau=tau)
    check_law(prior, "the prior", tolerance=PRIOR_TOLERANCE)
    if math.isinf(tau):
        return prior
    best = scores[prior > 0].max()
    if tau == 0:
        law = (scores == best) * prior
        return law / law.sum()
    return ((scores - best).clamp(max=0) / tau + prior.log()).softmax(0)


def penalised_score(law: Law, scores: Scores, prior: Law, tau: float) -> float:
    r""":math:`E_Q[s] - \tau KL(Q \| \pi)` of any distribution Q; the tilted score is its supremum."""
    check_range("the tilted score", "[0, inf]", tau=tau)
    if bool(((law > 0) & (prior == 0)).any()):
        return -math.inf  # at any tau: such a Q is no law over the prior's transformations
    gap = torch.where(law > 0, law * (law.log() - prior.log()), torch.zeros_like(law)).sum()
    return float((law * scores).sum()) - (tau * float(gap) if gap else 0.0)


def expected_finite_value(scores: Scores, prior: Law, tau: float, k: int) -> float:
    r"""Mean of :math:`\tau \log \frac1k \sum_j \exp(s_j / \tau)` over k independent draws from the prior.

    A lower bound of :func:`tilted_value` that grows with k. Computed by going through all n^k draws.
    """
    check_range("the tilted score", "[0, inf]", tau=tau)
    check_range("the tilted score", "[1, inf)", k=k)
    n = len(scores)
    draws = torch.cartesian_prod(*[torch.arange(n)] * k).view(-1, k)
    uniform = torch.full((k,), 1 / k, dtype=scores.dtype)
    values = torch.tensor([tilted_value(scores[row], uniform, tau) for row in draws], dtype=scores.dtype)
    return float((prior[draws].prod(1) * values).sum())
