"""Algorithm 1: phases in order, every sample of D, uniform passes, and nothing besides."""

from collections import Counter
from copy import deepcopy

import pytest
import torch
from torch.testing import assert_close

from meada.algorithm import Plan, Watch, begin, train
from meada.errors import MeadaError
from meada.methods import METHODS, Method
from meada.methods.method import Context
from meada.methods.parts.descent import Descent
from meada.methods.parts.domains import EachDomain
from meada.pool import Pool

SGD = Descent(name="sgd", lr=0.1)


@pytest.fixture
def data():
    return torch.rand(7, 3, 4, 4), torch.randint(5, (7,))


def go(net, pool, method, plan, descent=SGD, **more):
    training = begin(net, pool, method, descent)
    train(training, pool, method, plan, descent, **more)
    return training


@pytest.mark.parametrize(
    "rule, sizes",
    [("pool", [7, 14, 28, 56]), ("latest", [7, 14, 21, 28]), ("source", [7, 14, 21, 28])],
)
def test_the_pool_grows_by_its_rule_partial_block_included(linear_net, data, rule, sizes):
    pool = Pool(*data)
    seen = [len(pool)]
    method = METHODS["meada"](grow=rule, block=4)
    watch = Watch(grown=lambda training, pool: seen.append(len(pool)))
    go(
        linear_net,
        pool,
        method,
        Plan(rounds=3, min_steps=2, total_steps=8, batch_size=4),
        watch=watch,
    )
    assert seen == sizes == [method.growth(7, k) for k in range(4)]


def test_a_block_of_the_method_is_climbed_in_one_piece(linear_net, data):
    """Its size decides on the bits of a recorded run; the default of ``perturb`` is smaller."""
    images, labels = (one.repeat(30, *[1] * (one.ndim - 1)) for one in data)
    seen = []
    linear_net.register_forward_pre_hook(lambda net, given: seen.append(len(given[0])))
    pool = Pool(images, labels)
    go(linear_net, pool, METHODS["meada"](block=200), Plan(rounds=1, min_steps=1, total_steps=2, batch_size=4))
    assert max(seen) == 200


def test_each_rule_perturbs_what_it_says(linear_net, data):
    parents = {}
    for rule in ("pool", "latest", "source"):
        pool = Pool(*data)
        plan = Plan(rounds=2, min_steps=1, total_steps=2, batch_size=4)
        go(linear_net, pool, METHODS["meada"](grow=rule), plan)
        parents[rule] = pool.blocks[2].parents.tolist()
    assert parents == {"pool": [*range(14)], "latest": [*range(7, 14)], "source": [*range(7)]}


def test_new_samples_are_those_of_perturb(linear_net, data):
    from meada import perturb

    pool, plan = Pool(*data), Plan(rounds=1, min_steps=0, total_steps=0)
    go(
        linear_net,
        pool,
        METHODS["meada"](beta=3.0, gamma=0.2, step_size=0.1, steps=4, block=3),
        plan,
    )
    want = perturb(linear_net, *data, beta=3.0, gamma=0.2, step_size=0.1, steps=4)
    assert_close(pool.images(torch.arange(7, 14)), want)
    assert (want - data[0]).abs().max() > 1e-3


def test_rounds_come_after_each_t_min_steps(linear_net, data):
    told = []
    watch = Watch(stepped=lambda t, loss: told.append("min"), grown=lambda t, pool: told.append("max"))
    plan = Plan(rounds=2, min_steps=3, total_steps=8, batch_size=4)
    go(linear_net, Pool(*data), METHODS["meada"](), plan, watch=watch)
    assert told == ["min"] * 3 + ["max"] + ["min"] * 3 + ["max"] + ["min"] * 2


def test_every_pass_sees_every_sample_once(linear_net):
    counts: Counter[float] = Counter()

    def loss(net, batch, context):
        counts.update(batch.x[:, 0, 0, 0].tolist())
        return net(batch.x).sum()

    images = torch.linspace(0, 1, 10).reshape(10, 1, 1, 1).expand(10, 3, 4, 4)
    plan = Plan(rounds=0, min_steps=0, total_steps=6, batch_size=4)  # two passes of 4 + 4 + 2
    go(linear_net, Pool(images, torch.zeros(10).long()), Method(loss=loss), plan)
    assert set(counts.values()) == {2} and len(counts) == 10


@pytest.mark.parametrize("kind", [lambda loss: loss, EachDomain])
def test_every_pass_has_an_order_of_its_own(linear_net, kind):
    seen: list[float] = []

    def loss(net, batch, context):
        seen.extend(batch.x[:, 0, 0, 0].tolist())
        return net(batch.x).sum()

    images = torch.linspace(0, 1, 20).reshape(20, 1, 1, 1).expand(20, 3, 4, 4)
    plan = Plan(rounds=0, min_steps=0, total_steps=12, batch_size=5)  # three passes of four batches
    go(linear_net, Pool(images, torch.zeros(20).long()), Method(loss=kind(loss)), plan)
    passes = [tuple(seen[k : k + 20]) for k in (0, 20, 40)]
    assert len(set(passes)) == 3 and all(sorted(one) == sorted(passes[0]) for one in passes)


def test_rounds_that_grow_nothing_are_plain_sgd(linear_net, data):
    twin = deepcopy(linear_net)
    go(linear_net, Pool(*data), Method(), Plan(rounds=0, min_steps=0, total_steps=4, batch_size=7))
    x, y = data
    for _ in range(4):  # whole batches: the order does not matter
        loss = torch.nn.functional.cross_entropy(twin(x), y)
        grads = torch.autograd.grad(loss, list(twin.parameters()))
        with torch.no_grad():
            for p, g in zip(twin.parameters(), grads, strict=True):
                p -= 0.1 * g
    assert_close(linear_net.state_dict(), twin.state_dict())


def test_weight_decay_is_plain_l2(linear_net, data):
    twin = deepcopy(linear_net)
    descent = Descent(name="sgd", lr=0.1, weight_decay=0.3)
    plan = Plan(rounds=0, min_steps=0, total_steps=1, batch_size=7)
    go(linear_net, Pool(*data), Method(), plan, descent)
    x, y = data
    penalty = sum(p.square().sum() for p in twin.parameters()) / 2
    loss = torch.nn.functional.cross_entropy(twin(x), y) + 0.3 * penalty
    grads = torch.autograd.grad(loss, list(twin.parameters()))
    for p, q, g in zip(linear_net.parameters(), twin.parameters(), grads, strict=True):
        assert_close(p, q - 0.1 * g)


def test_the_cosine_reaches_its_steps(linear_net, data):
    rates = []
    watch = Watch(stepped=lambda t, loss: rates.append(t.optimiser.param_groups[0]["lr"]))
    descent = Descent(name="sgd", lr=1.0, schedule="cosine")
    plan = Plan(rounds=0, min_steps=0, total_steps=4, batch_size=4)
    go(linear_net, Pool(*data), Method(), plan, descent, watch=watch)
    assert rates == pytest.approx([1.0, (1 + 0.5**0.5) / 2, 0.5, (1 - 0.5**0.5) / 2])


@pytest.mark.parametrize("cut", [1, 4, 5, 9])
def test_stopping_and_going_on_is_the_same_run(linear_net, data, cut):
    """Cut anywhere, also at a pass's end and at a round's edge."""
    plan = Plan(rounds=2, min_steps=4, total_steps=12, batch_size=4)
    method = METHODS["meada"](step_size=0.1)
    twin = deepcopy(linear_net)
    go(linear_net, Pool(*data), method, plan)

    class Killed(Exception):
        pass

    def kill(training, loss):
        if training.step == cut:
            raise Killed

    pool = Pool(*data)
    training = begin(twin, pool, method, SGD)
    with pytest.raises(Killed):
        train(training, pool, method, plan, SGD, watch=Watch(stepped=kill))
    train(training, pool, method, plan, SGD)
    assert_close(linear_net.state_dict(), twin.state_dict(), rtol=0, atol=0)


def test_seeds_differ_and_repeat(linear_net, data):
    plan = Plan(rounds=1, min_steps=2, total_steps=6, batch_size=4)
    ends = []
    for seed in (1, 1, 2):
        net = deepcopy(linear_net)
        go(net, Pool(*data), METHODS["meada"](), plan, seed=seed)
        ends.append(net[1].weight)
    assert torch.equal(ends[0], ends[1]) and not torch.equal(ends[0], ends[2])


def test_the_callers_random_stream_is_left_alone(linear_net, data):
    torch.manual_seed(5)
    want = torch.rand(3)
    torch.manual_seed(5)
    go(linear_net, Pool(*data), Method(), Plan(rounds=0, min_steps=0, total_steps=3))
    assert torch.equal(torch.rand(3), want)


def test_what_a_loss_is_told(linear_net, data):
    told: list[Context] = []

    def loss(net, batch, context):
        told.append(context)
        return net(batch.x).sum()

    method = Method(loss=loss, grow=METHODS["meada"]().grow, growth=lambda n, k: n * 2**k)
    plan = Plan(rounds=1, min_steps=3, total_steps=5, batch_size=4)
    go(linear_net, Pool(*data), method, plan)
    assert [c.step for c in told] == [0, 1, 2, 3, 4]
    assert [c.batch_index for c in told] == [0, 1, 0, 0, 1]
    assert [c.batches for c in told] == [2, 2, 2, 4, 4]
    assert [c.pool_size for c in told] == [7, 7, 7, 14, 14]
    assert [c.round for c in told] == [0, 0, 0, 1, 1]
    draws = [torch.rand(1, generator=c.generator).item() for c in told]
    assert len(set(draws)) == 5


def test_a_plan_that_cannot_fit_says_so():
    with pytest.raises(MeadaError, match="3 rounds of 5 steps do not fit in total_steps=10"):
        Plan(rounds=3, min_steps=5, total_steps=10)


def test_nan_images_never_reach_the_pool(linear_net, data):
    pool = Pool(*data)
    plan = Plan(rounds=1, min_steps=0, total_steps=0)
    torch.nn.init.constant_(linear_net[1].weight, float("nan"))
    with pytest.raises(MeadaError, match="round 1, step 1 of 15: .* of 7 samples"):
        go(linear_net, pool, METHODS["meada"](), plan)
    assert len(pool) == 7
