"""Fusion: mixing weights are a distribution over sources, and nothing in them moves the trunk."""

from copy import deepcopy

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.testing import assert_close

from meada.errors import MeadaError
from meada.methods.fusion import Mixture, fusion
from meada.methods.method import Context
from meada.networks.embedding import embedding_passes
from meada.types import Batch


@pytest.fixture
def net() -> nn.Sequential:
    return nn.Sequential(nn.Flatten(), nn.Linear(12, 6), nn.Tanh(), nn.Linear(6, 4))


@pytest.fixture
def batch() -> Batch:
    return Batch(torch.rand(9, 3, 2, 2), torch.arange(9) % 4, torch.tensor([5, 1, 8] * 3))


@pytest.fixture
def fused(net) -> nn.Sequential:
    """Adapted, with read-outs and a domain branch that differ."""
    adapted = fusion().adapt(net)
    for weight in adapted[3].parameters():
        nn.init.normal_(weight)
    return adapted


def test_mixing_weights_sum_to_one_and_none_is_below_its_uniform_share(fused):
    w = fused[3].weights(100 * torch.randn(50, 6))  # far beyond where a softmax saturates
    assert_close(w.sum(1), torch.ones(50))
    assert w.min() >= 0.25 / 3 - 1e-12 and w.max() > 0.8


def test_logits_are_the_read_outs_mixed(fused, batch):
    z = fused[:3](batch.x)
    p = fused[3].domain(z).softmax(-1)
    want = torch.zeros(9, 4)
    for b in range(9):
        for s in range(3):
            want[b] += (0.75 * p[b, s] + 0.25 / 3) * fused[3].heads[s](z[b])
    assert_close(fused(batch.x), want)


def test_at_first_it_is_the_network_it_was_made_of(net, batch):
    before = deepcopy(net.state_dict())
    adapted = fusion(domains=5).adapt(net)
    assert_close(adapted(batch.x), net(batch.x))
    assert_close(net.state_dict(), before, rtol=0, atol=0)
    assert len(adapted[3].heads) == 5 and isinstance(net[3], nn.Linear)


def test_the_gradient_of_the_mixing_weights_stops_before_the_trunk(fused, batch):
    fused.train()
    trunk, own = list(fused[1].parameters()), list(fused[3].domain.parameters())
    w = fused[3].weights(fused[:3](batch.x))
    target = torch.rand(9, 3)
    slopes = torch.autograd.grad((w * target).sum(), trunk + own, allow_unused=True)
    assert slopes[:2] == (None, None) and all(slope.any() for slope in slopes[2:])


def test_the_trunk_hears_the_classes_alone_and_with_weights_held_still(fused, batch):
    fused.train()
    trunk = list(fused[1].parameters())
    loss = fusion(weight=3.0).loss(fused, batch, Context())
    got = torch.autograd.grad(loss, trunk)
    z = fused[:3](batch.x)
    w = fused[3].weights(z).detach()
    each = torch.stack([head(z) for head in fused[3].heads], 1)
    want = torch.autograd.grad(cross_entropy((w[..., None] * each).sum(1), batch.y), trunk)
    assert_close(got, want)


def test_the_domain_branch_learns_which_domain(fused, batch):
    """Its own cross-entropy is the whole of what the weight scales."""
    rank = {1: 0, 5: 1, 8: 2}
    domain = torch.tensor([rank[int(d)] for d in batch.domain])
    own = cross_entropy(fused[3].domain(fused[:3](batch.x)), domain)
    losses = [fusion(weight=v).loss(fused, batch, Context()) for v in (0.0, 2.0)]
    assert_close(losses[0], cross_entropy(fused(batch.x), batch.y))
    assert_close(losses[1] - losses[0], 2 * own)


def test_the_ascent_gets_the_true_gradient_of_the_prediction(fused, batch):
    fused.eval()
    x = batch.x[:1].clone().requires_grad_()
    (slope,) = torch.autograd.grad(fused(x)[0, 2], x)
    step, found = 1e-6, torch.zeros_like(x)
    for k in range(x.numel()):
        ends = []
        for sign in (1, -1):
            moved = x.detach().clone()
            moved.view(-1)[k] += sign * step
            ends.append(fused(moved)[0, 2].item())
        found.view(-1)[k] = (ends[0] - ends[1]) / (2 * step)
    assert_close(slope, found, rtol=1e-6, atol=1e-8)


def test_the_embedding_is_what_it_was(net, fused, batch):
    with embedding_passes(fused) as forward:
        _, z = forward(batch.x)
    assert_close(z, fused[:3](batch.x))
    with embedding_passes(fused.eval()) as forward:
        assert forward(batch.x)[1].requires_grad


def test_a_network_that_was_not_adapted_and_bad_settings_are_refused(net, batch):
    with pytest.raises(MeadaError, match="adapt"):
        fusion().loss(net, batch, Context())
    for bad in ({"domains": 1}, {"weight": -1.0}, {"uniform": 1.5}):
        with pytest.raises(MeadaError, match=next(iter(bad))):
            fusion(**bad)


def test_one_read_out_alone_is_that_read_out():
    layer = nn.Linear(6, 4)
    mixture = Mixture(layer, 3, uniform=0.0)
    with torch.no_grad():
        mixture.domain.bias[1] = 800.0  # the domain branch is certain
        mixture.heads[1].bias += 1.0
    z = torch.randn(5, 6)
    assert_close(mixture(z), layer(z) + 1.0)
