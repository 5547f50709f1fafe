"""MetaReg: phi learns through the inner steps at first, and stands still ever after."""

from copy import deepcopy

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.testing import assert_close

from meada.algorithm import Plan, Watch, begin, train
from meada.errors import MeadaError
from meada.methods.metareg import Regulariser, head_loss, inner, metareg
from meada.methods.method import Context
from meada.methods.parts.descent import Descent
from meada.pool import Pool

SGD = Descent(name="sgd", lr=0.05, momentum=0.9, weight_decay=0.01)


@pytest.fixture
def net() -> nn.Sequential:
    return nn.Sequential(nn.Flatten(), nn.Linear(12, 6), nn.Tanh(), nn.Linear(6, 4))


@pytest.fixture
def pool() -> Pool:
    return Pool(torch.rand(12, 3, 2, 2), torch.arange(12) % 4, torch.tensor([5, 1, 8] * 4))


def task(phi: float = 0.1):
    layer = nn.Linear(6, 4)
    r = Regulariser(layer)
    for values in r.phi.values():
        nn.init.normal_(values, std=phi)
    theta = {name: weight.detach().clone() for name, weight in layer.named_parameters()}
    a, b = ((torch.randn(7, 6), torch.randint(4, (7,))) for _ in range(2))
    return theta, r, a, b


def after(theta, r, a, b, steps=3, lr=0.3):
    return head_loss(inner(theta, r, *a, steps=steps, lr=lr), *b)


def test_the_regulariser_is_a_weighted_sum_of_absolute_values():
    layer = nn.Linear(2, 1)
    r = Regulariser(layer)
    assert r(dict(layer.named_parameters())) == 0  # no opinion at first
    with torch.no_grad():
        r.phi["weight"].copy_(torch.tensor([[2.0, -1.0]]))
        r.phi["bias"].fill_(10.0)
    theta = {"weight": torch.tensor([[-3.0, 0.5]]), "bias": torch.tensor([0.1])}
    assert_close(r(theta).detach(), torch.tensor(6.0 - 0.5 + 1.0))


def test_phis_gradient_through_the_inner_steps_is_a_finite_difference():
    theta, r, a, b = task()
    slopes = torch.autograd.grad(after(theta, r, a, b), list(r.parameters()))
    step = 1e-6
    for values, slope in zip(r.parameters(), slopes, strict=True):
        flat, found = values.data.view(-1), []
        for k in range(len(flat)):
            ends = []
            for sign in (1, -1):
                flat[k] += sign * step
                ends.append(after(theta, r, a, b).item())
                flat[k] -= sign * step
            found.append((ends[0] - ends[1]) / (2 * step))
        assert_close(slope.flatten(), torch.tensor(found), rtol=1e-6, atol=1e-9)
        assert slope.abs().min() > 1e-7


def test_every_inner_step_counts():
    """Steps 1 to l - 1 reach phi too: a graph cut between them would lose their share."""
    theta, r, a, b = task()
    whole = torch.autograd.grad(after(theta, r, a, b, steps=2), list(r.parameters()))
    once = inner(theta, r, *a, steps=1, lr=0.3)
    last = torch.autograd.grad(after(once, r, a, b, steps=1), list(r.parameters()))
    assert (whole[0] - last[0]).abs().max() > 1e-3


def test_an_inner_step_is_one_of_sgd_on_the_regularised_loss():
    theta, r, a, _ = task()
    weights = {name: weight.clone().requires_grad_() for name, weight in theta.items()}
    optimiser = torch.optim.SGD(weights.values(), lr=0.3)
    for _ in range(3):
        optimiser.zero_grad()
        value = cross_entropy(a[0] @ weights["weight"].T + weights["bias"], a[1])
        for name, weight in weights.items():
            value = value + (r.phi[name].detach() * weight.abs()).sum()
        value.backward()
        optimiser.step()
    assert_close(
        {k: v.detach() for k, v in inner(theta, r, *a, steps=3, lr=0.3).items()},
        {k: v.detach() for k, v in weights.items()},
    )


def test_the_first_stage_teaches_phi_and_a_network_of_its_own(net, pool):
    method = metareg(share=0.5)
    training = begin(net, pool, method, SGD)
    modules, batch = training.parts.modules, pool.batch(torch.arange(12))
    method.loss(net, batch, Context(parts=training.parts, step=4, total_steps=10)).backward()
    assert all(p.grad is None for p in net.parameters())
    assert all(p.grad.any() for p in modules.parameters())
    trunk, heads = modules["trunk"], modules["heads"]
    own = sum(
        cross_entropy(heads[k](trunk(batch.x[batch.domain == d])), batch.y[batch.domain == d])
        for k, d in enumerate((1, 5, 8))
    )
    learners = [*trunk.parameters(), *heads.parameters()]  # phi's term is no concern of theirs
    assert_close([p.grad for p in learners], list(torch.autograd.grad(own, learners)))


def test_the_final_training_starts_afresh_and_leaves_phi_fixed(net, pool):
    method = metareg(share=0.4, phi_lr=5.0)
    training = begin(net, pool, method, SGD)
    start, seen = deepcopy(net.state_dict()), []

    def note(training, _):
        seen.append([deepcopy(m.state_dict()) for m in (net, *training.parts.modules.values())])

    plan = Plan(rounds=0, min_steps=0, total_steps=10, batch_size=4)
    train(training, pool, method, plan, SGD, watch=Watch(stepped=note))
    for number, (now, *rest) in enumerate(seen):
        if number < 4:
            assert_close(now, start, rtol=0, atol=0)
        else:
            assert_close(rest, seen[3][1:], rtol=0, atol=0)  # trunk, read-outs, phi
            assert any(not torch.equal(now[k], start[k]) for k in start)
    phis = [rest[-1]["phi.weight"] for _, *rest in seen]
    assert all(not torch.equal(a, b) for a, b in zip(phis[:3], phis[1:4], strict=True))


def test_the_final_loss_is_the_risk_with_r_phi_of_the_networks_own_read_out(net, pool):
    method = metareg()
    training = begin(net, pool, method, SGD)
    phi, batch = training.parts.modules["phi"], pool.batch(torch.arange(12))
    for values in phi.parameters():
        nn.init.normal_(values)
    loss = method.loss(net, batch, Context(parts=training.parts, step=9, total_steps=10))
    want = cross_entropy(net(batch.x), batch.y) + sum(
        (phi.phi[name].detach() * weight.abs()).sum() for name, weight in net[3].named_parameters()
    )
    assert_close(loss, want)
    loss.backward()
    assert all(p.grad is None for p in training.parts.modules.parameters())


def test_the_first_stage_lasts_for_its_share(net, pool):
    method, batch = metareg(share=0.25), pool.batch(torch.arange(12))
    training = begin(net, pool, method, SGD)
    final = []
    for step in range(10):
        net.zero_grad()
        method.loss(net, batch, Context(parts=training.parts, step=step, total_steps=10)).backward()
        final.append(net[1].weight.grad is not None)
    assert final == [False] * 2 + [True] * 8  # a quarter of ten, rounded down


@pytest.mark.parametrize("bad", [{"share": 1.0}, {"inner_steps": 0}, {"inner_lr": 0.0}, {"phi_lr": 0.0}])
def test_settings_out_of_range_are_named(bad):
    with pytest.raises(MeadaError, match=next(iter(bad))):
        metareg(**bad)
