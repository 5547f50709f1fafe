"""Methods with parts for each domain: how domains are told apart, and resuming to the bit."""

from copy import deepcopy

import pytest
import torch
from tests_resume import killed_and_resumed
from torch import nn
from torch.testing import assert_close

import meada
from meada.algorithm import Plan, begin, train
from meada.errors import MeadaError
from meada.methods import METHODS
from meada.methods.method import Context
from meada.methods.parts.descent import Descent
from meada.methods.parts.domains import (
    EachDomain,
    check_splits,
    members,
    summed,
    with_fixed_weights,
    without_head,
)
from meada.networks.embedding import head_of
from meada.pool import Pool
from meada.runs.checkpoint import save_weights
from meada.types import Batch

SGD = Descent(name="sgd", lr=0.05, momentum=0.9)
PLAN = Plan(rounds=0, min_steps=0, total_steps=12, batch_size=4)
NAMES = ("mldg", "fusion", "metareg", "epi-fcr")
NUMBERS = torch.tensor([11, 2, 7])  # what domains go by is nobody's business


@pytest.fixture
def net() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, stride=2), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dropout(0.3),
        nn.Linear(4 * 3 * 3, 8), nn.Tanh(), nn.Linear(8, 5),
    )  # fmt: skip


@pytest.fixture
def pool() -> Pool:
    y = torch.arange(30) % 5
    x = 0.2 * torch.rand(30, 3, 8, 8) + 0.15 * y.view(-1, 1, 1, 1)
    return Pool(x, y, NUMBERS[torch.arange(30) % 3])


def fresh(name, net, pool):
    method = METHODS[name]()
    mine = method.adapt(deepcopy(net))
    return begin(mine, pool, method, SGD), method


def states(training):
    return (
        training.net.state_dict(),
        training.parts.modules.state_dict(),
        [o.state_dict()["state"] for o in training.optimisers],
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("cut", [1, 2, 7])  # in the first stages, between them, in the last
def test_killed_and_resumed_it_is_the_same_training(name, net, pool, tmp_path, cut):
    def anew():
        training, method = fresh(name, net, pool)
        return training, pool, method

    whole, resumed = killed_and_resumed(anew, PLAN, SGD, tmp_path, cut)
    assert_close(states(whole), states(resumed), rtol=0, atol=0)


@pytest.mark.parametrize("name", NAMES)
def test_it_learns(name, net, pool):
    training, method = fresh(name, net, pool)
    slow = SGD.model_copy(update={"lr": 0.01})  # batch norm of 12 samples is noisy
    train(training, pool, method, PLAN.model_copy(update={"total_steps": 150}), slow)
    net = training.net.eval()
    batch = pool.batch(torch.arange(30))
    assert (net(batch.x).argmax(1) == batch.y).double().mean() > 0.7  # of five classes


@pytest.mark.parametrize("name", NAMES)
def test_what_is_saved_predicts_and_is_climbed_on(name, net, pool, tmp_path):
    training, method = fresh(name, net, pool)
    train(training, pool, method, PLAN, SGD)
    save_weights(tmp_path / "model.safetensors", training.net)
    again = method.adapt(deepcopy(net))
    meada.runs.checkpoint.load_weights_into(again, tmp_path / "model.safetensors")
    batch = pool.batch(torch.arange(6))
    assert_close(again.eval()(batch.x), training.net.eval()(batch.x), rtol=0, atol=0)
    x = meada.perturb(again, batch.x, batch.y, beta=1.0, gamma=0.1, step_size=0.1, steps=2)
    ce = [nn.functional.cross_entropy(again(images), batch.y) for images in (batch.x, x)]
    assert x.shape == batch.x.shape and ce[1] > ce[0]


@pytest.mark.parametrize("name", NAMES)
def test_one_domain_is_refused_and_every_domain_is_asked_for(name, net, pool):
    training, method = fresh(name, net, pool)
    assert isinstance(method.loss, EachDomain)
    batch = pool.batch(torch.arange(6))
    context = Context(parts=training.parts, step=0, total_steps=8)
    for domain in (None, torch.full((6,), 7)):
        with pytest.raises(MeadaError, match="two source domains or more, got one"):
            method.loss(training.net, batch._replace(domain=domain), context)


@pytest.mark.parametrize("name", ["fusion", "metareg", "epi-fcr"])
def test_another_number_of_domains_than_it_has_parts_for_is_refused(name, net, pool):
    training, method = fresh(name, net, pool)
    batch = pool.batch(torch.arange(8))
    context = Context(parts=training.parts, step=0, total_steps=8)
    with pytest.raises(MeadaError, match=f"{name}: the batch must have 3 source domains, got 4"):
        domain = torch.arange(8) % 4
        method.loss(training.net, batch._replace(domain=domain), context)


@pytest.mark.parametrize("name", ["metareg", "epi-fcr"])
def test_it_has_parts_for_as_many_domains_as_the_pool(name, net, pool):
    heads = {"metareg": "heads", "epi-fcr": "readouts"}[name]
    for n in (2, 4):
        mine = Pool(pool.blocks[0].images, pool.labels, torch.arange(30) % n)
        training, method = fresh(name, net, mine)
        assert len(training.parts.modules[heads]) == n
        train(training, mine, method, PLAN.model_copy(update={"total_steps": 5}), SGD)
    with pytest.raises(MeadaError, match="two source domains or more, got one"):
        fresh(name, net, Pool(pool.blocks[0].images, pool.labels))


def test_domains_keep_their_place_whatever_they_go_by():
    x, y = torch.rand(5, 3, 1, 1), torch.zeros(5, dtype=torch.int64)
    places = members(Batch(x, y, torch.tensor([9, -4, 9, 100, -4])), "mldg")
    assert [p.tolist() for p in places] == [[1, 4], [0, 2], [3]]
    ce = torch.tensor([1.0, 2.0, 5.0, 7.0, 4.0])
    assert_close(summed(ce, places), torch.tensor(3.0 + 3.0 + 7.0))


def test_features_and_readout_are_the_network(net):
    x = torch.rand(3, 3, 8, 8)
    net.eval()
    f, before = without_head(net), deepcopy(net.state_dict())
    assert_close(head_of(net)(f(x)), net(x), rtol=0, atol=0)
    assert isinstance(net[7], nn.Linear)  # a copy was taken apart
    z = f(x).detach().requires_grad_()
    with_fixed_weights(head_of(net), z).sum().backward()
    assert z.grad.any() and all(p.grad is None for p in net.parameters())
    assert_close(net.state_dict(), before, rtol=0, atol=0)


def test_a_network_that_does_not_come_apart_is_refused(net):
    x = torch.rand(2, 3, 8, 8)
    check_splits(net, x)
    with pytest.raises(MeadaError, match="must be the output of its last nn.Linear, '0.7'"):
        check_splits(nn.Sequential(net, nn.Softplus()), x)
    with pytest.raises(MeadaError, match="must be an nn.Linear after other layers"):
        check_splits(nn.Sequential(nn.Conv2d(3, 2, 8), nn.Flatten()), x)
