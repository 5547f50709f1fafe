"""ME-ADA with a Bayesian network (section 4.1 and the supplement): h is the mean entropy over weight samples."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from meada.entropy import Uncertainty
from meada.errors import MeadaError, check_range
from meada.methods.meada import GrowthRule, meada
from meada.methods.method import Context, Method
from meada.networks.bayesian import Prediction, ScaleMixture, divergence, to_bayesian
from meada.networks.bayesian.variational import WeightSample, using_weights
from meada.networks.posterior import Renewal
from meada.types import Batch, Scalar
from meada.units import Units

Share = Literal["uniform", "blundell"]
ShareOf = Callable[[int, int], float]  # of batch i of M


def meada_bnn(
    *, beta: float = 10.0, gamma: float = 1 / 1024, step_size: float = 1 / 32, steps: int = 15, units: Units = "sample",
    units_batch: int = 32, grow: GrowthRule = "pool", block: int = 128, stochastic: Sequence[str] = (),
    posterior_draws: int = 5, draws: Renewal = "shared", uncertainty: Uncertainty = "expected",
    training_draws: int = 1, prediction_draws: int = 8, predict: Prediction = "mean_softmax", share: Share = "uniform",
    temperature: float = 1.0, rho: float = -5.0, pi: float = 0.25, minus_log_sigma1: float = 0.0,
    minus_log_sigma2: float = 6.0,
) -> Method:  # fmt: skip
    """A Bayesian network trained with the free energy; the ascent's h is an expectation over weights.

    Args, next to those of :func:`meada.methods.meada.meada`:
        posterior_draws: T of the maximisation phase.
        training_draws: T of the free energy.
        prediction_draws: S of a prediction.
        predict: what the network says in eval mode (:func:`meada.networks.to_bayesian`).
        share: of the divergence that a mini-batch carries: 1/M of it each, or Blundell's.
        temperature: of the posterior: weight of the whole divergence; 1 is the free energy.
        rho: where the posterior's deviations start, softplus(rho).
        pi, minus_log_sigma1, minus_log_sigma2: the prior's.
    """
    check_range("meada-bnn", "[1, inf)", training_draws=training_draws)
    check_range("meada-bnn", "[0, inf)", temperature=temperature)
    if share not in SHARES:
        raise MeadaError(f"meada-bnn: share must be 'uniform' or 'blundell', got '{share}'")
    prior = ScaleMixture(pi=pi, sigma1=math.exp(-minus_log_sigma1), sigma2=math.exp(-minus_log_sigma2))
    plain = meada(
        beta=beta, gamma=gamma, step_size=step_size, steps=steps, units=units,
        units_batch=units_batch, grow=grow, block=block, stochastic=stochastic,
        posterior_draws=posterior_draws, draws=draws, uncertainty=uncertainty,
    )  # fmt: skip
    return replace(
        plain,
        adapt=partial(to_bayesian, prior=prior, rho=rho, samples=prediction_draws, predict=predict),
        loss=partial(free_energy, draws=training_draws, share=SHARES[share], temperature=temperature),
        title="ME-ADA (BNN)",
        about="ME-ADA on a Bayesian network: entropy and loss are means over draws of the weights.",
        passes=(float(training_draws), float(training_draws)),
    )


def free_energy(
    net: nn.Module, batch: Batch, context: Context, *, draws: int, share: ShareOf, temperature: float
) -> Scalar:
    r"""Mean over j of :math:`\pi_i [\log q(\theta_j) - \log p(\theta_j)] - \log p(D_i|\theta_j)` for mini-batch i of M.

    Per sample: the likelihood is a mean over the batch, so the divergence is divided by the mean size of a batch,
    N / M. Summed over a pass that is the free energy over N.
    """
    m, n = context.batches, context.pool_size
    weight = temperature * share(context.batch_index, m) * m / n
    total = torch.zeros((), dtype=batch.x.dtype, device=batch.x.device)
    for _ in range(draws):
        draw = WeightSample(int(torch.randint(2**62, (), generator=context.generator)))
        with using_weights(net, draw):
            total = total + cross_entropy(net(batch.x), batch.y)
        total = total + weight * divergence(net, draw)
    return total / draws


def blundell_share(i: int, m: int) -> float:
    r""":math:`2^{M-i} / (2^M - 1)` for batch i = 1, ..., M, here counted from 0.

    Written as :math:`2^{-i} / (1 - 2^{-M})`, which no M can overflow.

    >>> [round(blundell_share(i, 3), 4) for i in range(3)]  # 4/7, 2/7, 1/7
    [0.5714, 0.2857, 0.1429]
    >>> blundell_share(0, 100_000)
    0.5
    """
    return 2.0 ** -(i + 1) / -math.expm1(-m * math.log(2))


SHARES: dict[str, ShareOf] = {"uniform": lambda i, m: 1 / m, "blundell": blundell_share}
