"""Bayes by Backprop: priors, posteriors, samples and predictions."""

import math
from copy import deepcopy

import numpy as np
import pytest
import torch
from safetensors.torch import load, save
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import norm
from torch import nn
from torch.distributions import Normal, kl_divergence
from torch.nn.functional import conv2d, linear, pad, softplus
from torch.testing import assert_close

from meada.errors import MeadaError
from meada.evaluation import evaluate
from meada.evaluation.score import predict
from meada.maximise import perturb
from meada.networks import NETWORKS, to_bayesian
from meada.networks.bayesian import ScaleMixture, divergence
from meada.networks.bayesian.variational import WeightSample, using_weights
from meada.networks.posterior import Posterior

RHO_1 = math.log(math.expm1(1.0))  # softplus of it is 1


def small() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 5))


def divergences(mu: float, sigma: float, prior, n: int = 100) -> torch.Tensor:
    """Of one weight, n times n of them at once, in ten draws."""
    net = to_bayesian(nn.Linear(n, n, bias=False), prior, rho=math.log(math.expm1(sigma)))
    nn.init.constant_(net.weight_mu, mu)
    return torch.tensor([divergence(net, WeightSample("kl", j)).item() / n**2 for j in range(10)])


def standard_error(draws: torch.Tensor) -> float:
    return float(draws.std()) / math.sqrt(len(draws))


def test_mu_is_the_given_networks_and_sigma_is_softplus_of_rho():
    plain = small()
    net = to_bayesian(plain, rho=-3.0)
    for name in ("0", "4"):
        twin, layer = net.get_submodule(name), plain.get_submodule(name)
        assert isinstance(twin, type(layer)) and type(twin) is not type(layer)
        assert torch.equal(twin.weight_mu, layer.weight) and torch.equal(twin.bias_mu, layer.bias)
        assert_close(softplus(twin.weight_rho), torch.full_like(layer.weight, math.log1p(math.exp(-3))))
    assert type(net[1]) is nn.BatchNorm2d and torch.equal(net[1].weight, plain[1].weight)
    assert "weight" in plain[0]._parameters  # the given one is left alone


def test_a_draw_is_mu_plus_sigma_times_unit_noise(single):
    net = to_bayesian(nn.Sequential(nn.Linear(300, 200)), rho=RHO_1)
    theta = WeightSample(3).weight("0.weight", net[0].weight_mu, net[0].weight_rho).theta
    noise = ((theta - net[0].weight_mu) / softplus(net[0].weight_rho)).detach()
    assert abs(float(noise.mean())) < 4 / math.sqrt(noise.numel())
    assert abs(float(noise.square().mean()) - 1) < 4 * math.sqrt(2 / noise.numel())


def test_divergence_of_one_draw_is_log_q_minus_log_p():
    net = to_bayesian(small(), Normal(0.0, 0.3), rho=-1.0)
    draw, total = WeightSample("one"), 0.0
    for name in ("0", "4"):
        twin = net.get_submodule(name)
        for kind in ("weight", "bias"):
            mu, rho = getattr(twin, f"{kind}_mu"), getattr(twin, f"{kind}_rho")
            theta = draw.weight(f"{name}.{kind}", mu, rho).theta
            total += Normal(mu, softplus(rho)).log_prob(theta).sum()
            total -= Normal(0.0, 0.3).log_prob(theta).sum()
    assert_close(divergence(net, draw), total)


def test_its_mean_is_the_closed_form_for_one_gaussian():
    draws = divergences(0.4, 0.3, Normal(0.0, 0.8))
    want = float(kl_divergence(Normal(0.4, 0.3), Normal(0.0, 0.8)))
    assert abs(draws.mean() - want) < 5 * standard_error(draws) < 0.02 * want


@pytest.mark.parametrize("mu, sigma", [(0.0, 0.0025), (0.01, 0.0067), (0.3, 0.05)])
def test_its_mean_is_the_integral_for_the_mixture(mu, sigma):
    prior, q = ScaleMixture(), Normal(mu, sigma)

    def integrand(t: float) -> float:
        theta = torch.tensor(t)
        log_q = q.log_prob(theta)
        return float(log_q.exp() * (log_q - prior.log_prob(theta)))

    want, _ = quad(integrand, mu - 10 * sigma, mu + 10 * sigma, limit=500)
    draws = divergences(mu, sigma, prior)
    assert abs(draws.mean() - want) < 5 * standard_error(draws) < 0.05 * want


def test_the_gradient_of_a_draw_is_the_gradient_of_its_value():
    net = to_bayesian(nn.Linear(2, 2), rho=-2.0)
    weights = [net.weight_mu, net.weight_rho, net.bias_mu, net.bias_rho]
    got = torch.autograd.grad(divergence(net, WeightSample(7)), weights)
    for weight, gradient in zip(weights, got, strict=True):
        with torch.no_grad():
            ends = []
            for step in (1e-6, -1e-6):
                weight.view(-1)[0] += step
                ends.append(divergence(net, WeightSample(7)))
                weight.view(-1)[0] -= step
        assert_close(gradient.view(-1)[0], (ends[0] - ends[1]) / 2e-6, rtol=1e-4, atol=1e-5)


CONVOLUTIONS = [
    {"groups": 2}, {"dilation": 2}, {"bias": False}, {"stride": 2, "padding": 1},
    {"padding": 1, "padding_mode": "circular"}, {"padding": "same", "padding_mode": "reflect"},
    {"groups": 4, "dilation": (1, 2), "bias": False},
]  # fmt: skip


@pytest.mark.parametrize("how", CONVOLUTIONS, ids=str)
def test_any_convolution_has_a_twin(how):
    layer = nn.Conv2d(4, 8, 3, **how)
    net, x = to_bayesian(layer, rho=-1.0), torch.rand(2, 4, 7, 7)
    draw = WeightSample("conv")
    with using_weights(net, draw):
        got = net(x)
    theta = draw.weight(".weight", net.weight_mu, net.weight_rho).theta
    bias = None if layer.bias is None else draw.weight(".bias", net.bias_mu, net.bias_rho).theta
    padding = how.get("padding", 0)
    if how.get("padding_mode"):
        x, padding = pad(x, (1, 1, 1, 1), mode=how["padding_mode"]), 0
    want = conv2d(x, theta, bias, layer.stride, padding, layer.dilation, layer.groups)
    assert_close(got, want)


class Twice(nn.Module):
    """One Linear called twice, and registered under two names."""

    def __init__(self) -> None:
        super().__init__()
        self.shared = nn.Linear(4, 4)
        self.again = self.shared
        self.head = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.again(self.shared(x.flatten(1)).tanh()))


def test_a_layer_that_is_called_twice_has_one_posterior_and_one_draw():
    net, x, draw = to_bayesian(Twice(), rho=-1.0), torch.rand(2, 1, 2, 2), WeightSample(1)
    assert net.again is net.shared
    with using_weights(net, draw):
        got = net(x)
        w, b = net.shared.weight, net.shared.bias
        z = linear(linear(x.flatten(1), w, b).tanh(), w, b)
        assert_close(got, linear(z, net.head.weight, net.head.bias))
    counted = sum(
        (weight.log_q - net.prior.log_prob(weight.theta).sum())
        for twin in (net.shared, net.head)
        for weight in twin.weights(draw)
    )
    assert_close(divergence(net, draw), counted)


def test_a_layer_that_the_forward_pass_does_not_reach_still_diverges():
    net = nn.Module()
    net.used, net.unused = nn.Linear(2, 2), nn.Linear(2, 2)
    net = to_bayesian(net)
    draw = WeightSample(1)
    with using_weights(net, draw):
        net.used(torch.rand(1, 2))
    divergence(net, draw).backward()
    assert net.unused.weight_rho.grad.any()


def tied() -> nn.Module:
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    net[1].weight = net[0].weight
    return net


def hooked() -> nn.Module:
    """As the weight norm of old leaves a layer: a tensor in place of the parameter."""
    layer = nn.Linear(4, 4)
    weight = layer._parameters.pop("weight")
    layer.weight_g, layer.weight = nn.Parameter(weight.norm()), weight * 1
    return layer


@pytest.mark.parametrize(
    "net, why",
    [
        (tied(), "'0.weight' and '1.weight' share one weight tensor"),
        (nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(4, 4))), "layer '0'"),
        (nn.Sequential(hooked()), "layer '0' .* from weight_g"),
        (nn.Sequential(nn.LazyLinear(4)), "no weights yet"),
        (nn.Sequential(nn.Flatten()), "must have an nn.Linear or nn.Conv2d"),
    ],
    ids=["tied", "weight norm", "old weight norm", "lazy", "none"],
)
def test_what_has_no_twin_is_refused_with_a_reason(net, why):
    with pytest.raises(MeadaError, match=why):
        to_bayesian(net)


def test_eval_mode_gives_the_log_of_the_mean_softmax():
    net, x = to_bayesian(small(), rho=-1.0, samples=3).eval(), torch.rand(4, 3, 4, 4)
    p = torch.zeros(4, 5)
    for s in range(3):
        with using_weights(net, WeightSample(net.seed, "predict", s)):
            p += net(x).softmax(-1) / 3
    assert_close(net(x), p.log())
    assert_close(net(x).exp().sum(-1), torch.ones(4))


def test_a_prediction_is_the_same_each_time_and_in_any_batch():
    net, x = to_bayesian(small(), rho=-1.0).eval(), torch.rand(6, 3, 4, 4)
    whole = net(x)
    torch.rand(3)  # somebody else draws
    assert torch.equal(whole, net(x))
    assert_close(torch.cat([net(x[:1]), net(x[1:])]), whole, rtol=0, atol=1e-12)
    other = to_bayesian(small(), rho=-1.0, seed=1).eval()
    other.load_state_dict(net.state_dict())
    assert not torch.allclose(other(x), whole)


def test_the_batches_of_an_evaluation_share_their_draws_and_the_next_one_draws_anew(monkeypatch):
    net, x = to_bayesian(small(), rho=-1.0, samples=3).eval(), torch.rand(6, 3, 4, 4)
    one_by_one = torch.cat([net(one) for one in x.split(1)])
    drawn, weight = [], WeightSample.weight

    def counted(self, place, mu, rho):
        drawn.append(place) if place not in self._held else None
        return weight(self, place, mu, rho)

    monkeypatch.setattr(WeightSample, "weight", counted)
    assert torch.equal(predict(net, x, batch_size=1), one_by_one)
    tensors = sum(name.endswith("_mu") for name, _ in net.named_parameters())
    assert len(drawn) == 3 * tensors  # not once for each of the six batches
    with torch.no_grad():
        next(net.parameters()).add_(1.0)  # a step of training later
    assert torch.equal(predict(net, x, batch_size=1), torch.cat([net(one) for one in x.split(1)]))
    assert net.kept is None


def test_the_posteriors_mean_is_the_given_network():
    plain, x = small().eval(), torch.rand(2, 3, 4, 4)
    net = to_bayesian(plain, predict="posterior_mean").eval()
    assert_close(net(x), plain(x))
    assert not torch.equal(net.train()(x), plain.train()(x))


def test_in_training_mode_each_pass_is_another_draw_as_in_dropout():
    net, x = to_bayesian(nn.Sequential(nn.Flatten(), nn.Linear(4, 2))), torch.rand(3, 1, 2, 2)
    torch.manual_seed(5)
    first, second = net(x), net(x)
    torch.manual_seed(5)
    assert torch.equal(first, net(x)) and not torch.equal(first, second)


def test_a_narrow_posterior_is_the_plain_network():
    plain, x = small().eval(), torch.rand(2, 3, 4, 4)
    net = to_bayesian(plain, rho=-40.0).eval()
    assert_close(net(x), plain(x).log_softmax(-1), rtol=0, atol=1e-12)


def test_state_dicts_save_and_load():
    net, x = to_bayesian(small(), rho=-1.0).eval(), torch.rand(2, 3, 4, 4)
    other = to_bayesian(small(), rho=-4.0).eval()
    other.load_state_dict(load(save(net.state_dict())))
    assert torch.equal(net(x), other(x)) and torch.equal(net(x), deepcopy(net)(x))


def test_a_bayesian_network_is_not_made_bayesian_again():
    net = to_bayesian(small())
    assert to_bayesian(net) is net


def test_frozen_layers_stay_frozen():
    plain = small()
    plain[0].weight.requires_grad_(False)
    net = to_bayesian(plain)
    assert not net[0].weight_mu.requires_grad and not net[0].weight_rho.requires_grad
    assert net[0].bias_rho.requires_grad


@pytest.mark.parametrize("name", ["lenet", "wideresnet16_1", "resnext29_4x32"])
def test_networks_of_the_tables_become_bayesian(name, single):
    plain, x = NETWORKS[name](num_classes=10), torch.rand(2, 3, 32, 32)
    net = to_bayesian(plain, samples=2)
    scores = evaluate(net, {"d": (x, torch.tensor([0, 1]))})
    assert scores["d"]["n"] == 2
    kept = sum(p.numel() for m in plain.modules() for p in m._parameters.values()
               if p is not None and isinstance(m, nn.Linear | nn.Conv2d))  # fmt: skip
    assert sum(p.numel() for n, p in net.named_parameters() if n.endswith("_rho")) == kept


def state(net):
    return (
        {k: v.clone() for k, v in net.state_dict().items()},
        [(p.requires_grad, None if p.grad is None else p.grad.clone()) for p in net.parameters()],
        [m.training for m in net.modules()],
        [getattr(m, "draw", None) for m in net.modules()],
        [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in net.modules()],
    )


@pytest.mark.parametrize("stop", [None, KeyboardInterrupt])
def test_the_ascent_leaves_it_as_it_was(stop):
    net, x, y = to_bayesian(small()).train(), torch.rand(3, 3, 4, 4), torch.tensor([0, 1, 2])
    net(x).sum().backward()
    before, calls = state(net), []

    def interrupt(*_):
        calls.append(1)
        if stop and len(calls) == 4:
            raise stop

    handle = net[2].register_forward_hook(interrupt)
    settings = {"beta": 1.0, "gamma": 1.0, "step_size": 0.01, "steps": 3, "posterior": Posterior(samples=2)}
    if stop:
        with pytest.raises(stop):
            perturb(net, x, y, **settings)
    else:
        perturb(net, x, y, **settings)
    handle.remove()
    assert_close(before, state(net), rtol=0, atol=0)


PRIOR = ScaleMixture()
PLACES = np.array([0.0, 1e-4, 2e-3, 0.0093, 0.02, 0.5, 3.0, 40.0, 1e3])


def published(theta: np.ndarray) -> np.ndarray:
    """-log sigma1 = 0, -log sigma2 = 6, pi = 0.25, by scipy."""
    parts = [np.log(0.25) + norm.logpdf(theta, scale=1.0),
             np.log(0.75) + norm.logpdf(theta, scale=math.exp(-6))]  # fmt: skip
    return logsumexp(parts, axis=0)


def test_the_defaults_are_the_supplements():
    got = PRIOR.log_prob(torch.from_numpy(PLACES))
    assert_close(got, torch.from_numpy(published(PLACES)), rtol=1e-12, atol=0)


def test_it_is_a_density():
    density = lambda t: float(PRIOR.log_prob(torch.tensor(t)).exp())
    total, _ = quad(density, -8, 8, points=[-0.02, -0.005, 0.0, 0.005, 0.02], limit=200)
    assert total == pytest.approx(1, abs=1e-9)


def test_single_precision_does_not_underflow(single):
    """Far out both densities are 0 in float32; their logarithms are not."""
    got = PRIOR.log_prob(torch.tensor([20.0, 100.0]))
    assert_close(got, torch.tensor(published(np.array([20.0, 100.0])), dtype=torch.float32))


def test_the_derivative_in_closed_form_is_the_derivative():
    theta = torch.tensor([-0.5, -0.01, -1e-3, 0.0, 2e-3, 0.0093, 0.012, 1.5], requires_grad=True)
    assert torch.autograd.gradcheck(PRIOR.log_prob, theta, eps=1e-7, atol=1e-3)
    (got,) = torch.autograd.grad(PRIOR.log_prob(theta).sum(), theta)
    wide = math.log(0.25) - theta.square() / 2
    narrow = math.log(0.75) + 6 - theta.square() / 2 * math.exp(12)
    (want,) = torch.autograd.grad(torch.logaddexp(wide, narrow).sum(), theta)
    assert_close(got, want, rtol=1e-10, atol=1e-10)


def test_two_equal_parts_are_one_gaussian():
    theta = torch.randn(20)
    both = ScaleMixture(pi=0.3, sigma1=0.7, sigma2=0.7)
    assert_close(both.log_prob(theta), Normal(0.0, 0.7).log_prob(theta))


@pytest.mark.parametrize("bad", [{"pi": 0.0}, {"pi": 1.0}, {"sigma1": 0.0}, {"sigma2": -1.0}])
def test_what_is_no_prior_is_refused(bad):
    with pytest.raises(MeadaError, match=next(iter(bad))):
        ScaleMixture(**bad)
