"""PAR: the patch classifier learns by itself, and the first layer learns to defeat it."""

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, log_softmax
from torch.testing import assert_close

from meada.algorithm import begin
from meada.errors import MeadaError
from meada.methods.method import Context
from meada.methods.par import par, patch_loss
from meada.methods.parts.descent import Descent
from meada.minimise import descend
from meada.pool import Pool

SGD = Descent(name="sgd", lr=0.1)


@pytest.fixture
def net() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.Tanh(), nn.Conv2d(4, 2, 2), nn.Tanh(), nn.Flatten(),
        nn.Linear(2 * 5 * 5, 5),
    )  # fmt: skip


@pytest.fixture
def pool() -> Pool:
    shade = (torch.arange(6) % 5 / 5).view(6, 1, 1, 1)  # so that a patch alone tells the class
    return Pool(0.2 * torch.rand(6, 3, 8, 8) + 0.8 * shade, torch.arange(6) % 5)


def gradients(net, pool, method):
    training = begin(net, pool, method, SGD)
    batch = pool.batch(torch.arange(6))
    net.zero_grad()
    method.loss(net, batch, Context(parts=training.parts)).backward()
    h = training.parts.modules["patch"]
    return h, batch, [p.grad.clone() for p in net.parameters()]


@pytest.mark.parametrize("weight", [0.0, 0.3, 2.0])
def test_the_first_layer_sees_the_patch_classifiers_gradient_reversed(net, pool, weight):
    h, batch, found = gradients(net, pool, par(weight=weight))
    own = [p.grad.clone() for p in h.parameters()]
    risk = torch.autograd.grad(cross_entropy(net(batch.x), batch.y), list(net.parameters()))
    patches = patch_loss(h(net[0](batch.x)), batch.y)
    first = torch.autograd.grad(patches, list(net[0].parameters()), retain_graph=True)
    for got, ce, of_patch in zip(found[:2], risk[:2], first, strict=True):
        assert_close(got, ce - weight * of_patch)
        assert of_patch.abs().max() > 1e-6
    assert_close(found[2:], list(risk[2:]))  # what lies above the layer does not hear of patches
    assert_close(own, list(torch.autograd.grad(patches, list(h.parameters()))))  # not reversed


def test_only_the_patch_classifier_is_in_its_optimiser(net, pool):
    training = begin(net, pool, par(), SGD)
    adam = training.parts.optimisers["patch"]
    held = {id(p) for group in adam.param_groups for p in group["params"]}
    assert held == {id(p) for p in training.parts.modules["patch"].parameters()}
    assert isinstance(adam, torch.optim.Adam)
    assert held.isdisjoint(id(p) for g in training.optimiser.param_groups for p in g["params"])


def test_the_patch_classifier_gets_better_on_a_fixed_map(net, pool):
    method = par(lr=0.05, weight=0.0)
    training = begin(net, pool, method, SGD)
    still = Descent(name="sgd", lr=1e-12)
    batch, h = pool.batch(torch.arange(6)), training.parts.modules["patch"]
    before = patch_loss(h(net[0](batch.x)), batch.y)
    for _ in range(30):
        descend(training, method.loss, batch, Context(parts=training.parts), still)
    assert patch_loss(h(net[0](batch.x)), batch.y) < before - 0.05


def test_the_risk_of_patches_is_the_mean_over_images_and_places():
    logits, y = torch.randn(2, 3, 4, 5), torch.tensor([2, 0])
    places = [-log_softmax(logits[i, :, r, c], 0)[y[i]] for i in range(2) for r in range(4) for c in range(5)]
    assert_close(patch_loss(logits, y), torch.stack(places).mean())


@pytest.mark.parametrize(
    "settings, shapes",
    [
        ({}, [(5, 4, 1, 1)]),
        ({"kernel": 3}, [(5, 4, 3, 3)]),  # PAR_B
        ({"hidden": [100, 50]}, [(100, 4, 1, 1), (50, 100, 1, 1), (5, 50, 1, 1)]),  # PAR_M
        ({"layer": "2"}, [(5, 2, 1, 1)]),  # PAR_H
    ],
)
def test_the_variants_of_its_source(net, pool, settings, shapes):
    h = begin(net, pool, par(**settings), SGD).parts.modules["patch"]
    assert [tuple(m.weight.shape) for m in h if isinstance(m, nn.Conv2d)] == shapes


def test_building_leaves_the_network_as_it_was(pool):
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(144, 5))
    before = {k: v.clone() for k, v in net.state_dict().items()}
    begin(net, pool, par(), SGD)
    assert_close(net.state_dict(), before, rtol=0, atol=0)
    assert net.training and not net[0]._forward_hooks


def test_what_cannot_be_is_refused(linear_net, net, pool):
    with pytest.raises(MeadaError, match="must have an nn.Conv2d, got none"):
        begin(linear_net, Pool(torch.rand(2, 3, 4, 4), torch.arange(2)), par(), SGD)
    with pytest.raises(MeadaError, match="layer '9' must be a submodule"):
        begin(net, pool, par(layer="9"), SGD)
    for bad in ({"weight": -1.0}, {"lr": 0.0}, {"kernel": 0}, {"hidden": [0]}):
        with pytest.raises(MeadaError, match=next(iter(bad))):
            par(**bad)
