"""A method from outside the package, with a module and an optimiser of its own."""

from copy import deepcopy

import pytest
import torch
from tests_resume import killed_and_resumed
from torch import nn
from torch.nn.functional import cross_entropy
from torch.testing import assert_close

from meada.algorithm import Plan, begin, train
from meada.methods.method import Context, Method, Parts
from meada.methods.parts.descent import Descent
from meada.pool import Pool
from meada.types import Batch


def with_critic() -> Method:
    """Beside the network, a critic of its logits learns by an Adam of its own."""

    def build(net: nn.Module, example: Batch, context: Context) -> Parts:
        critic = nn.Linear(net(example.x).shape[1], 3)
        return Parts(
            nn.ModuleDict({"critic": critic}),
            {"critic": torch.optim.Adam(critic.parameters(), lr=0.01)},
        )

    def loss(net: nn.Module, batch: Batch, context: Context) -> torch.Tensor:
        logits = net(batch.x)
        guess = context.parts.modules["critic"](logits)
        noise = torch.rand((), generator=context.generator)
        return cross_entropy(logits, batch.y) + noise * cross_entropy(guess, batch.domain)

    return Method(loss=loss, build=build)


PLAN = Plan(rounds=0, min_steps=0, total_steps=9, batch_size=4)
SGD = Descent(name="sgd", lr=0.1, momentum=0.9)


def fresh(net):
    pool = Pool(torch.rand(10, 3, 4, 4, generator=torch.Generator().manual_seed(1)),
                torch.arange(10) % 5, torch.arange(10) % 3)  # fmt: skip
    method = with_critic()
    return begin(deepcopy(net), pool, method, SGD), pool, method


def test_its_module_is_trained_by_its_own_optimiser(linear_net):
    training, pool, method = fresh(linear_net)
    critic = deepcopy(training.parts.modules["critic"].state_dict())
    train(training, pool, method, PLAN, SGD)
    moved = training.parts.modules["critic"].state_dict()
    assert all(not torch.equal(critic[k], moved[k]) for k in critic)
    mine = {id(p) for g in training.optimiser.param_groups for p in g["params"]}
    assert mine.isdisjoint(id(p) for p in training.parts.modules.parameters())


@pytest.mark.parametrize("cut", [1, 4, 8])
def test_it_is_saved_and_resumed_with_the_network(linear_net, tmp_path, cut):
    whole, resumed = killed_and_resumed(lambda: fresh(linear_net), PLAN, SGD, tmp_path, cut)
    for a, b in ((whole.net, resumed.net), (whole.parts.modules, resumed.parts.modules)):
        assert_close(a.state_dict(), b.state_dict(), rtol=0, atol=0)
    moments = [t.parts.optimisers["critic"].state_dict()["state"] for t in (whole, resumed)]
    assert_close(moments[0], moments[1], rtol=0, atol=0)
