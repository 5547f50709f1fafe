"""Algorithm 1 in a library user's hands."""

from copy import deepcopy

import pytest
import torch
from torch import nn

import meada
from meada.errors import MeadaError

PLAN = meada.Plan(rounds=2, min_steps=3, total_steps=12, batch_size=4)


@pytest.fixture
def data():
    return torch.rand(8, 3, 4, 4), torch.arange(8) % 5


def test_it_trains_in_place_and_tells_what_it_did(linear_net, data):
    before = deepcopy(linear_net.state_dict())
    record = meada.fit(linear_net, data, "meada", plan=PLAN, seed=3)
    assert not torch.equal(before["1.weight"], linear_net[1].weight)
    assert record["steps"] == 12 and record["method"] == "meada" and record["seed"] == 3
    assert [r["pool"] for r in record["rounds"]] == [16, 32]
    assert record["rounds"][0]["ce"][1] > record["rounds"][0]["ce"][0]
    assert record["seconds"]["maximise"] > 0


def test_a_pool_is_taken_as_it_is_and_keeps_its_blocks(linear_net, data):
    pool = meada.Pool(*data, store="uint8")
    meada.fit(linear_net, pool, meada.METHODS["meada"](grow="source"), plan=PLAN)
    assert [len(b.labels) for b in pool.blocks] == [8, 8, 8]
    assert pool.blocks[1].images.dtype == torch.uint8


def test_loss_falls(data):
    net = nn.Sequential(nn.Flatten(), nn.Linear(48, 5))
    plan = meada.Plan(rounds=0, min_steps=0, total_steps=200, batch_size=8)
    before = meada.evaluate(net, {"a": data})["a"]["nll"]
    meada.fit(net, data, "erm", plan=plan, descent=meada.Descent(lr=0.05))
    assert meada.evaluate(net, {"a": data})["a"]["nll"] < 0.5 * before


@pytest.mark.parametrize(
    "images, labels, sentence",
    [
        (torch.rand(4, 3, 5, 5), torch.zeros(4).long(), r"images of shape \(3, 5, 5\)"),
        (torch.rand(4, 3, 4, 4), torch.full((4,), 7), "knows the classes 0 to 4"),
        (torch.rand(0, 3, 4, 4), torch.zeros(0).long(), "source is empty"),
    ],
)
def test_what_the_network_cannot_take_is_said_first(linear_net, images, labels, sentence):
    with pytest.raises(MeadaError, match=sentence):
        meada.fit(linear_net, (images, labels), plan=PLAN)


def test_an_unknown_method_gives_the_nearest(linear_net, data):
    with pytest.raises(MeadaError, match="did you mean 'meada'"):
        meada.fit(linear_net, data, "meda")


def test_a_loss_that_leaves_the_numbers_is_said(linear_net, data):
    bad = meada.Method(loss=lambda net, batch, context: net(batch.x).sum() * float("inf"))
    with pytest.raises(MeadaError, match="step 1 of the minimisation phase: the loss is"):
        meada.fit(linear_net, data, bad, plan=PLAN)


def test_the_name_stays_a_function():
    import meada.algorithm

    assert callable(meada.fit)
