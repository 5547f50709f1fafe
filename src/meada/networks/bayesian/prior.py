"""Priors p(theta) over the weights of a Bayesian network."""

import math
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from meada.errors import MeadaError

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


@runtime_checkable
class Prior(Protocol):
    """Weights are independent: one log density a weight."""

    def log_prob(self, theta: Tensor) -> Tensor: ...


@dataclass(frozen=True, kw_only=True)
class Gaussian:
    r""":math:`N(0, \sigma^2)`, for which the divergence has a closed form.

    >>> Gaussian(sigma=1.0).log_prob(torch.zeros(1))
    tensor([-0.9189])
    """

    sigma: float = 1.0

    def __post_init__(self) -> None:
        _check_deviations(sigma=self.sigma)

    def log_prob(self, theta: Tensor) -> Tensor:
        return -0.5 * (theta / self.sigma).square() - math.log(self.sigma) - HALF_LOG_2PI


@dataclass(frozen=True, kw_only=True)
class ScaleMixture:
    r""":math:`\pi N(0, \sigma_1^2) + (1 - \pi) N(0, \sigma_2^2)` (Blundell et al., 2015).

    The defaults are the supplement's: :math:`-\log\sigma_1 = 0, -\log\sigma_2 = 6, \pi = 0.25`.

    >>> ScaleMixture().log_prob(torch.tensor([0.0, 0.1]))  # narrow at 0, wide beyond
    tensor([ 4.7942, -2.3102])
    """

    pi: float = 0.25
    sigma1: float = 1.0
    sigma2: float = math.exp(-6)

    def __post_init__(self) -> None:
        _check_deviations(sigma1=self.sigma1, sigma2=self.sigma2)
        if not 0 < self.pi < 1:
            raise MeadaError(f"the prior's pi is {self.pi}: between 0 and 1 is needed")

    def log_prob(self, theta: Tensor) -> Tensor:
        return _LogMixture.apply(theta, self)


class _LogMixture(torch.autograd.Function):
    """The mixture's log density with its derivative in closed form.

    Autograd would keep five tensors of the size of the weights and go over them a dozen times.
    """

    @staticmethod
    def forward(ctx: Any, theta: Tensor, prior: ScaleMixture) -> Tensor:
        square = theta.square()
        wide = square * (-0.5 / prior.sigma1**2)
        wide += math.log(prior.pi) - math.log(prior.sigma1) - HALF_LOG_2PI
        narrow = square.mul_(-0.5 / prior.sigma2**2)
        narrow += math.log1p(-prior.pi) - math.log(prior.sigma2) - HALF_LOG_2PI
        if ctx.needs_input_grad[0]:
            # -theta (r / sigma1^2 + (1 - r) / sigma2^2), r the chance that theta is of the wide one
            precision = (wide - narrow).sigmoid_()
            precision.mul_(prior.sigma1**-2 - prior.sigma2**-2).add_(prior.sigma2**-2)
            ctx.save_for_backward(precision.mul_(theta).neg_())
        return torch.logaddexp(wide, narrow)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (score,) = ctx.saved_tensors
        return gradient * score, None


def _check_deviations(**values: float) -> None:
    for name, value in values.items():
        if not 0 < value < math.inf:
            raise MeadaError(f"the prior's {name} is {value}: a number above 0 is needed")
