"""Epi-FCR: who learns in an episode, and who is only borrowed."""

from copy import deepcopy

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.testing import assert_close

from meada.algorithm import Plan, begin, train
from meada.errors import MeadaError
from meada.methods.epi_fcr import epi_fcr
from meada.methods.method import Context
from meada.methods.parts.descent import Descent
from meada.pool import Pool

SGD = Descent(name="sgd", lr=0.05, momentum=0.9, weight_decay=0.01)
RANK = {1: 0, 5: 1, 8: 2}  # of the domains' numbers


@pytest.fixture
def net() -> nn.Sequential:
    return nn.Sequential(nn.Flatten(), nn.Linear(12, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 4))


@pytest.fixture
def pool() -> Pool:
    return Pool(torch.rand(12, 3, 2, 2), torch.arange(12) % 4, torch.tensor([5, 1, 8] * 4))


@pytest.fixture
def begun(net, pool):
    """Networks of one domain that differ from one another and from the network."""
    method = epi_fcr(warm_up=0.0)
    training = begin(net, pool, method, SGD)
    for weight in training.parts.modules["features"].parameters():
        nn.init.normal_(weight, std=0.5)
    return training


def value(training, pool, step=0, total=10, seed=0, **settings):
    context = Context(
        parts=training.parts, step=step, total_steps=total,
        generator=torch.Generator().manual_seed(seed),
    )  # fmt: skip
    return epi_fcr(**settings).loss(training.net, pool.batch(torch.arange(12)), context)


def slopes(training, pool, module, **settings):
    loss = value(training, pool, warm_up=0.0, **settings)
    found = torch.autograd.grad(loss, list(module.parameters()), allow_unused=True)
    return [torch.zeros(()) if slope is None else slope for slope in found]


OFF = {"lambda_f": 0.0, "lambda_c": 0.0, "lambda_r": 0.0}
ON = {"lambda_f": 20.0, "lambda_c": 5.0, "lambda_r": 10.0}


@pytest.mark.parametrize("seed", range(4))
def test_the_foreign_half_is_frozen_in_each_episode(begun, pool, seed):
    """What a network of one domain learns is its own domain alone, episodes or none."""
    for half in ("features", "readouts"):
        module = begun.parts.modules[half]
        own = slopes(begun, pool, module, seed=seed, **OFF)
        assert_close(slopes(begun, pool, module, seed=seed, **ON), own, rtol=1e-12, atol=1e-14)
        assert any(slope.any() for slope in own)


def test_a_borrowed_networks_statistics_do_not_move_either(begun, pool):
    """Two passes with episodes leave the batch norm of the parts as two without."""
    twin = deepcopy(begun)
    for training, weights in ((begun, ON), (twin, OFF)):
        for seed in range(3):
            value(training, pool, warm_up=0.0, seed=seed, **weights)
    assert_close(begun.parts.modules.state_dict(), twin.parts.modules.state_dict(), rtol=0, atol=0)
    assert all(m.training for m in begun.parts.modules.modules())
    assert all(p.requires_grad for p in begun.parts.modules["features"].parameters())


def test_each_half_of_the_network_hears_of_its_own_episodes(begun, pool):
    net = begun.net
    f, c = net[1], net[4]
    learns = lambda module, **on: [
        not torch.allclose(a, b)
        for a, b in zip(
            slopes(begun, pool, module, **{**OFF, **on}), slopes(begun, pool, module, **OFF),
            strict=True,
        )
    ]  # fmt: skip
    assert learns(f, lambda_f=1.0)[0] and not any(learns(c, lambda_f=1.0))
    assert not any(learns(f, lambda_c=1.0)) and all(learns(c, lambda_c=1.0))
    assert learns(f, lambda_r=1.0)[0] and not any(learns(c, lambda_r=1.0))


def test_the_whole_loss_by_hand(begun, pool):
    """For one of the six pairs i != j; which one is the generator's choice."""
    twin = deepcopy(begun)  # a pass moves the statistics of batch norm
    net, modules = twin.net, twin.parts.modules
    f, c = net[:4], net[4]
    x, y, domain, _ = pool.batch(torch.arange(12))
    got = value(begun, pool, warm_up=0.0, lambda_f=2.0, lambda_c=0.5, lambda_r=0.1).item()
    of = {d: (domain == d).nonzero().flatten() for d in RANK}
    logits, z = net(x), f(x)
    base = sum(cross_entropy(logits[m], y[m]) for m in of.values())
    for d, m in of.items():
        base = base + cross_entropy(modules["readouts"][RANK[d]](modules["features"][RANK[d]](x[m])), y[m])
    base = base + 0.1 * sum(cross_entropy(modules["random"](z[m]), y[m]) for m in of.values())
    pairs = {}
    for i in RANK:
        for j in RANK:
            m = of[j]
            abroad = modules["features"].eval()[RANK[i]](x[m])
            pairs[i, j] = (
                base
                + 2.0 * cross_entropy(modules["readouts"][RANK[i]](z[m]), y[m])
                + 0.5 * cross_entropy(c(abroad), y[m])
            ).item()
    near = min(pairs, key=lambda pair: abs(pairs[pair] - got))
    assert near[0] != near[1] and got == pytest.approx(pairs[near], rel=1e-12)


def test_the_random_read_out_never_changes_and_is_nobodys_to_train(net, pool):
    method = epi_fcr(warm_up=0.25)
    training = begin(net, pool, method, SGD)
    stranger = training.parts.modules["random"]
    before = deepcopy(stranger.state_dict())
    train(training, pool, method, Plan(rounds=0, total_steps=12, min_steps=0, batch_size=4), SGD)
    assert_close(stranger.state_dict(), before, rtol=0, atol=0)
    held = {id(p) for o in training.optimisers for g in o.param_groups for p in g["params"]}
    assert held.isdisjoint(id(p) for p in stranger.parameters())
    assert not torch.equal(before["weight"], net[4].weight)
    others = training.parts.modules["features"].parameters()
    assert all(id(p) in held for p in others)


@pytest.mark.parametrize("warm_up, total, length", [(0.3, 10, 3), (1 / 6, 3001, 500), (0.0, 5, 0)])
def test_the_warm_up_has_the_stated_length(begun, pool, warm_up, total, length):
    """Before it ends the loss is that of AGG and of the networks of one domain: no episode."""
    plain = value(begun, pool, warm_up=1.0, total=total)
    for step in {0, length - 1, length, length + 1} - {-1}:
        now = value(begun, pool, warm_up=warm_up, step=step, total=total)
        assert (now == plain) == (step < length)


def test_networks_of_one_domain_begin_as_copies_with_read_outs_of_their_own(net, pool):
    modules = begin(net, pool, epi_fcr(), SGD).parts.modules
    assert len(modules["features"]) == len(modules["readouts"]) == 3
    for trunk in modules["features"]:
        assert_close(trunk[1].state_dict(), net[1].state_dict(), rtol=0, atol=0)
        assert trunk[1].weight is not net[1].weight
    weights = [layer.weight for layer in (*modules["readouts"], modules["random"], net[4])]
    assert len({float(weight.detach().sum()) for weight in weights}) == 5


@pytest.mark.parametrize("bad", [{"lambda_f": -1.0}, {"warm_up": 1.1}, {"lr": 0.0}])
def test_settings_out_of_range_are_named(bad):
    with pytest.raises(MeadaError, match=next(iter(bad))):
        epi_fcr(**bad)
