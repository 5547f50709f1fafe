"""Bayes by Backprop (Blundell et al., 2015): a network whose weights have a posterior.

The supplement's ``q(theta|psi)``: Gaussian, diagonal, psi = (mu, rho). A sample is one set of weights
for the whole batch (plain reparameterisation): then theta_j is a network, which the maximisation
phase needs, and log q(theta_j) - log p(theta_j) is that of the weights which made the prediction."""

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from meada.errors import MeadaError, check_range
from meada.networks.bayesian import variational
from meada.networks.bayesian.variational import Stochastic, Variational, WeightSample, using_weights
from meada.networks.freezing import temporarily
from meada.types import Logits, Scalar

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


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
        check_range("prior", "(0, inf)", sigma1=self.sigma1, sigma2=self.sigma2)
        check_range("prior", "(0, 1)", pi=self.pi)

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


Prior = ScaleMixture | torch.distributions.Distribution  # weights are independent: one log density a weight
Prediction = Literal["mean_softmax", "posterior_mean"]


class Bayesian(Stochastic):
    """Mixin of the network: the forward pass outside a weight sample.

    Training mode: one new sample from torch's global generator, as dropout does. Eval mode: the log of the mean softmax
    over ``samples`` fixed samples, which serves as logits everywhere; or the logits of the posterior's mean.
    """

    prior: Prior
    samples: int
    predict: Prediction
    seed: int
    training: bool  # the network's own
    kept: dict[int, WeightSample] | None = None  # a prediction's samples, while nothing changes the weights

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        if self.sample is not None or (not self.training and self.predict == "posterior_mean"):
            return super().forward(*args, **kwargs)  # type: ignore[misc]
        if self.training:
            return self._under(WeightSample(int(torch.randint(2**62, ())), lean=True), *args, **kwargs)
        each = [self._under(self._prediction(s), *args, **kwargs).log_softmax(-1) for s in range(self.samples)]
        return torch.stack(each).logsumexp(0) - math.log(self.samples)

    def _prediction(self, s: int) -> WeightSample:
        sample = WeightSample(self.seed, "predict", s, lean=True)
        return sample if self.kept is None else self.kept.setdefault(s, sample)

    def _under(self, sample: WeightSample, *args: Any, **kwargs: Any) -> Logits:
        assert isinstance(self, nn.Module)
        with using_weights(self, sample):
            return super().forward(*args, **kwargs)  # type: ignore[misc]


def to_bayesian(
    net: nn.Module, prior: Prior | None = None, *, rho: float = -5.0, samples: int = 8,
    predict: Prediction = "mean_softmax", seed: int = 0,
) -> nn.Module:  # fmt: skip
    """A copy of ``net`` in which every Linear and Conv2d has a posterior around its weights.

    Names of submodules stay; a parameter ``weight`` becomes ``weight_mu`` and ``weight_rho``. A
    network that is Bayesian already is returned unchanged.

    Args:
        prior: of each weight; the supplement's scale mixture by default.
        rho: initial value of every posterior's rho, sigma = softplus(rho); at -5 it is 0.0067, so that early
            training is like the given network's.
        samples: S, weight samples of a prediction in eval mode; fixed by ``seed``, so that it is always the same.
        predict: in eval mode the log of the mean softmax, or the posterior mean's logits.

    >>> net = to_bayesian(nn.Sequential(nn.Flatten(), nn.Linear(4, 2)), predict="posterior_mean")
    >>> [name for name, _ in net.named_parameters()]
    ['1.weight_mu', '1.weight_rho', '1.bias_mu', '1.bias_rho']
    """
    if any(isinstance(module, Bayesian) for module in net.modules()):
        return net
    if samples < 1 or predict not in ("mean_softmax", "posterior_mean"):
        raise MeadaError(
            "samples must be at least 1 and predict 'mean_softmax' or 'posterior_mean', "
            f"got samples={samples}, predict='{predict}'"
        )
    variational.refuse(net)
    net = deepcopy(net)
    for name, layer in [(name, m) for name, m in net.named_modules() if isinstance(m, variational.LAYERS)]:
        variational.make_variational(layer, name, rho)
    variational.add_mixin(Bayesian, net)
    assert isinstance(net, Bayesian)
    net.prior, net.samples = prior or ScaleMixture(), samples
    net.predict, net.seed = predict, seed
    return net


@contextmanager
def sharing_samples(net: nn.Module) -> Iterator[None]:
    """Predictions inside share their weight samples: a batch need not sample all the weights again.

    For as long as the weights do not change; the predictions are the same to the bit.
    """
    with ExitStack() as stack:
        for module in net.modules():
            if isinstance(module, Bayesian):
                stack.enter_context(temporarily([module], "kept", {}))
        yield


def divergence(net: nn.Module, sample: WeightSample) -> Scalar:
    r""":math:`\log q(\theta_j) - \log p(\theta_j)` of a sample, whose mean over samples is the KL.

    >>> prior = torch.distributions.Normal(0.0, 1.0)
    >>> net = to_bayesian(nn.Linear(300, 300, bias=False), prior, rho=0.5413)  # sigma = 1
    >>> _ = nn.init.constant_(net.weight_mu, 2.0)
    >>> round(divergence(net, WeightSample(0)).item() / 300**2, 1)  # KL(N(2, 1) || N(0, 1)) = 2^2 / 2
    2.0
    """
    (prior,) = {module.prior for module in net.modules() if isinstance(module, Bayesian)}
    layers = [module for module in net.modules() if isinstance(module, Variational)]
    weights = [weight for layer in layers for weight in layer.weights(sample)]
    return torch.stack([weight.log_q - prior.log_prob(weight.theta).sum() for weight in weights]).sum()
