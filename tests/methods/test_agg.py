"""AGG: all sources as one, or a batch of each domain in every step."""

from collections import Counter

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.testing import assert_close

from meada.algorithm import Plan, Watch, begin, train
from meada.methods import METHODS
from meada.methods.erm import agg
from meada.methods.method import Context, Method
from meada.methods.parts.descent import Descent
from meada.methods.parts.domains import EachDomain
from meada.minimise import Training, batch_indices, batches_per_epoch
from meada.pool import Pool

SGD = Descent(name="sgd", lr=0.1)
SIZES = (7, 3, 1)


@pytest.fixture
def pool() -> Pool:
    domains = torch.arange(3).repeat_interleave(torch.tensor(SIZES))
    return Pool(torch.rand(11, 3, 4, 4), torch.arange(11) % 5, domains)


def test_pooled_it_is_erm(linear_net, pool):
    batch = pool.batch(torch.arange(11))
    losses = [m.loss(linear_net, batch, Context()) for m in (agg(), METHODS["erm"]())]
    assert_close(losses[0], losses[1], rtol=0, atol=0)


def test_each_domain_counts_alike_however_many_it_has(linear_net, pool):
    batch = pool.batch(torch.arange(11))
    pieces = [slice(0, 7), slice(7, 10), slice(10, 11)]
    want = sum(cross_entropy(linear_net(batch.x[i]), batch.y[i]) for i in pieces)
    assert_close(agg(each_domain=True).loss(linear_net, batch, Context()), want)


def standing(**where: int) -> Training:
    net = nn.Linear(1, 1)
    return Training(net, torch.optim.SGD(net.parameters()), **where)


def drawn(pool: Pool, steps: int, batch_size: int = 2) -> list[torch.Tensor]:
    training, out = standing(), []
    for index in batch_indices(training, pool, 5, until=steps, batch_size=batch_size, each=True):
        training.step += 1
        training.position += 1
        out.append(index)
    return out


def test_every_batch_holds_as_many_of_each_domain(pool):
    for index in drawn(pool, 9):
        assert pool.domains[index].bincount().tolist() == [2, 2, 2]


def test_a_domain_comes_round_again_only_when_it_was_seen_whole(pool):
    steps = drawn(pool, batches_per_epoch(pool, 2, each=True))
    assert len(steps) == 4  # 7 pictures in batches of 2
    for d, n in enumerate(SIZES):
        order = torch.cat([index[pool.domains[index] == d] for index in steps]).tolist()
        for at in range(0, len(order) - n + 1, n):
            assert len(set(order[at : at + n])) == n
        assert max(Counter(order).values()) - min(Counter(order).values()) <= 1


def test_pages_differ_and_a_resumed_run_draws_the_same(pool):
    whole = drawn(pool, 11)
    assert not torch.equal(torch.cat(whole[:4]), torch.cat(whole[4:8]))
    training = standing(step=6, epoch=1, position=2)
    rest = []
    for index in batch_indices(training, pool, 5, until=11, batch_size=2, each=True):
        training.step += 1
        training.position += 1
        rest.append(index)
    assert all(torch.equal(a, b) for a, b in zip(whole[6:], rest, strict=True))


def test_training_gives_a_loss_what_it_asks_for(linear_net, pool):
    seen: list[list[int]] = []

    def loss(net, batch, context):
        seen.append(batch.domain.bincount(minlength=3).tolist())
        assert context.batches == (2 if wrapped else 3)
        return net(batch.x).sum()

    plan = Plan(rounds=0, min_steps=0, total_steps=5, batch_size=4)
    for wrapped in (True, False):
        method = Method(loss=EachDomain(loss) if wrapped else loss)
        training = begin(linear_net, pool, method, SGD)
        train(training, pool, method, plan, SGD, watch=Watch())
    assert seen[:5] == [[4, 4, 4]] * 5 and [4, 4, 4] not in seen[5:]
