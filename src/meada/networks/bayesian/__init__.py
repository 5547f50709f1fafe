"""Bayes by Backprop (Blundell et al., 2015): a network whose weights have a posterior.

The supplement's ``q(theta|psi)``: Gaussian, diagonal, psi = (mu, rho). A sample is one set of weights
for the whole batch (plain reparameterisation): then theta_j is a network, which the maximisation
phase needs, and log q(theta_j) - log p(theta_j) is that of the weights which made the prediction.
"""

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from typing import Any, Literal

import torch
from torch import Tensor, nn

from meada.errors import MeadaError
from meada.networks.bayesian.prior import Prior, ScaleMixture
from meada.networks.bayesian.variational import LAYERS, Variational, make_variational, refuse
from meada.networks.bayesian.weight_sample import Stochastic, WeightSample, add_mixin, using_weights
from meada.networks.freezing import temporarily
from meada.types import Logits, Scalar

Prediction = Literal["mean_softmax", "posterior_mean"]


class Bayesian(Stochastic):
    """Mixin of the network: what a forward pass is when no weight sample is in use.

    Training mode: one new sample from torch's global generator, as dropout does. Eval mode: the log
    of the mean softmax over ``samples`` fixed samples, which serves as logits everywhere; or the
    logits of the posterior's mean.
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
    net: nn.Module,
    prior: Prior | None = None,
    *,
    rho: float = -5.0,
    samples: int = 8,
    predict: Prediction = "mean_softmax",
    seed: int = 0,
) -> nn.Module:
    """A copy of ``net`` in which every Linear and Conv2d has a posterior around its weights.

    Names of submodules stay; a parameter ``weight`` becomes ``weight_mu`` and ``weight_rho``. A
    network that is Bayesian already is returned unchanged.

    Args:
        prior: of each weight; the supplement's scale mixture by default.
        rho: initial value of every posterior's rho, sigma = softplus(rho); at -5 it is 0.0067, so that early
            training is like the given network's.
        samples: S, weight samples of a prediction in eval mode; fixed by ``seed``, so that it is always
            the same.
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
    refuse(net)
    net = deepcopy(net)
    layers = {name: m for name, m in net.named_modules() if isinstance(m, LAYERS)}
    for name, layer in layers.items():
        make_variational(layer, name, rho)
    add_mixin(Bayesian, net)
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

    >>> from meada.networks.bayesian.prior import Gaussian
    >>> net = to_bayesian(nn.Linear(300, 300, bias=False), Gaussian(), rho=0.5413)  # sigma = 1
    >>> _ = nn.init.constant_(net.weight_mu, 2.0)
    >>> round(divergence(net, WeightSample(0)).item() / 300**2, 1)  # KL(N(2, 1) || N(0, 1)) = 2^2 / 2
    2.0
    """
    (prior,) = {module.prior for module in net.modules() if isinstance(module, Bayesian)}
    terms = [
        weight.log_q - prior.log_prob(weight.theta).sum()
        for module in net.modules()
        if isinstance(module, Variational)
        for weight in module.weights(sample)
    ]
    return torch.stack(terms).sum()
