"""What every method owes the trainer, whatever it is; newcomers join by being in METHODS."""

from copy import deepcopy
from typing import get_args

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from meada.algorithm import Plan, begin, train
from meada.methods import METHODS
from meada.methods.method import Context
from meada.methods.parts.descent import Descent
from meada.pool import Pool
from meada.types import Family


@pytest.fixture(params=METHODS)
def method(request):
    return METHODS[request.param]()


@pytest.fixture
def net() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.Tanh(), nn.Flatten(), nn.Linear(4 * 64, 8), nn.Tanh(),
        nn.Linear(8, 5),
    )  # fmt: skip


@pytest.fixture
def pool() -> Pool:
    domains = torch.arange(12) % 3
    return Pool(torch.rand(12, 3, 8, 8), torch.arange(12) % 5, domains)


PLAN = Plan(rounds=1, min_steps=2, total_steps=5, batch_size=12)
SGD = Descent(name="sgd", lr=0.05)


def test_loss_is_one_finite_number_that_reaches_every_parameter(method, net, pool):
    net = method.adapt(net)
    training = begin(net, pool, method, SGD)
    batch = pool.batch(torch.arange(12))
    loss = method.loss(net, batch, Context(parts=training.parts, pool_size=12))
    loss.backward()
    assert loss.shape == () and loss.isfinite()
    assert all(p.grad is not None and p.grad.any() for p in net.parameters())


def test_growing_keeps_the_source_the_network_and_the_range(method, net, pool):
    net = method.adapt(net)
    training = begin(net, pool, method, SGD)
    weights, source = deepcopy(net.state_dict()), pool.blocks[0].images.clone()
    method.grow(net, pool, Context(parts=training.parts, pool_size=12))
    x = pool.images(torch.arange(len(pool)))
    assert torch.equal(x[:12], source) and x.min() >= 0 and x.max() <= 1
    assert len(pool) == method.growth(12, 1)
    assert_close(net.state_dict(), weights, rtol=0, atol=0)


def test_the_same_seed_is_the_same_training(method, net, pool):
    ends = []
    for _ in range(2):
        twin = method.adapt(deepcopy(net))
        mine = Pool(pool.blocks[0].images, pool.labels[:12], pool.domains[:12])
        training = begin(twin, mine, method, SGD)
        train(training, mine, method, PLAN, SGD)
        ends.append((twin.state_dict(), training.parts.modules.state_dict()))
    assert_close(ends[0], ends[1], rtol=0, atol=0)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_says_what_reports_need(name):
    method = METHODS[name]()
    assert method.title and method.title == method.title.strip() and len(method.title) < 20
    assert method.about.endswith(".") and method.about[0].isupper() and method.about.count(". ") == 0
    assert method.families <= set(get_args(Family))
    assert min(method.passes) >= 1


def test_no_two_methods_share_a_title():
    titles = [make().title for make in METHODS.values()]
    assert len(set(titles)) == len(titles)
    assert {METHODS[name]().title for name in ("erm", "ada", "meada", "augmix")} == {"ERM", "ADA", "ME-ADA", "AugMix"}
