"""MLDG: the gradient goes through the step that G is measured after."""

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.testing import assert_close

from meada.errors import MeadaError
from meada.methods.method import Context
from meada.methods.mldg import mldg
from meada.types import Batch


@pytest.fixture
def net() -> nn.Sequential:
    return nn.Sequential(nn.Flatten(), nn.Linear(12, 4), nn.Tanh(), nn.Linear(4, 3))


@pytest.fixture
def batch() -> Batch:
    return Batch(torch.rand(12, 3, 2, 2), torch.arange(12) % 3, torch.tensor([5, 1, 8] * 4))


def held_out(seed: int = 3) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def value(net, batch, **settings) -> torch.Tensor:
    return mldg(**settings).loss(net, batch, Context(generator=held_out()))


def by_hand(net, batch, unseen: int, alpha: float, beta: float) -> torch.Tensor:
    """F + beta G, with the step actually taken on the weights and taken back."""
    others = [d for d in (1, 5, 8) if d != unseen]
    of = lambda d: cross_entropy(net(batch.x[batch.domain == d]), batch.y[batch.domain == d])
    f = sum(of(d) for d in others)
    slopes = torch.autograd.grad(f, list(net.parameters()))
    with torch.no_grad():
        for weight, slope in zip(net.parameters(), slopes, strict=True):
            weight -= alpha * slope
        g = of(unseen)
        for weight, slope in zip(net.parameters(), slopes, strict=True):
            weight += alpha * slope
    return f.detach() + beta * g


def unseen_domain(net, batch) -> int:
    """The one whose loss appears once the step has no length and F no part in the comparison."""
    alone = value(net, batch, alpha=0.0, beta=1.0) - value(net, batch, alpha=0.0, beta=0.0)
    ce = {d: cross_entropy(net(batch.x[batch.domain == d]), batch.y[batch.domain == d])
          for d in (1, 5, 8)}  # fmt: skip
    return min(ce, key=lambda d: abs(ce[d] - alone))


def test_the_loss_is_f_and_g_after_a_step_down_f(net, batch):
    want = by_hand(net, batch, unseen_domain(net, batch), alpha=0.7, beta=0.5)
    for order in ("first", "second"):
        assert_close(value(net, batch, alpha=0.7, beta=0.5, order=order).detach(), want)


def gradient(net, batch, **settings) -> torch.Tensor:
    slopes = torch.autograd.grad(value(net, batch, **settings), list(net.parameters()))
    return torch.cat([slope.flatten() for slope in slopes])


def finite_difference(net, batch, **settings) -> torch.Tensor:
    step, found = 1e-5, []
    for weight in net.parameters():
        flat = weight.data.view(-1)
        for k in range(len(flat)):
            ends = []
            for sign in (1, -1):
                flat[k] += sign * step
                ends.append(float(value(net, batch, **settings).detach()))
                flat[k] -= sign * step
            found.append((ends[0] - ends[1]) / (2 * step))
    return torch.tensor(found)


def test_the_gradient_with_its_second_order_term_is_a_finite_difference(net, batch):
    settings = {"alpha": 0.7, "beta": 0.5}
    exact = finite_difference(net, batch, **settings)
    assert_close(gradient(net, batch, **settings), exact, rtol=1e-7, atol=1e-8)
    first = gradient(net, batch, **settings, order="first")
    assert (first - exact).abs().max() > 1e-3  # the term that the first order leaves out is there


def test_the_first_order_takes_the_step_as_a_constant(net, batch):
    unseen = unseen_domain(net, batch)
    seen, rest = batch.domain != unseen, batch.domain == unseen
    f = lambda: 2 * cross_entropy(net(batch.x[seen]), batch.y[seen])  # domains of equal size
    own = torch.autograd.grad(f(), list(net.parameters()))
    moved = nn.Sequential(nn.Flatten(), nn.Linear(12, 4), nn.Tanh(), nn.Linear(4, 3))
    moved.load_state_dict(net.state_dict())
    with torch.no_grad():
        for weight, slope in zip(moved.parameters(), own, strict=True):
            weight -= 0.7 * slope
    there = torch.autograd.grad(cross_entropy(moved(batch.x[rest]), batch.y[rest]), list(moved.parameters()))
    want = torch.cat([(a + 0.5 * b).flatten() for a, b in zip(own, there, strict=True)])
    assert_close(gradient(net, batch, alpha=0.7, beta=0.5, order="first"), want)


def test_every_domain_is_held_out_in_its_turn(net, batch):
    found = {mldg(alpha=0.0, beta=3.0).loss(net, batch, Context(generator=held_out(s))).item() for s in range(30)}
    assert len({round(v, 9) for v in found}) == 3


def test_the_network_is_left_as_it_was(net, batch):
    before = {k: v.clone() for k, v in net.state_dict().items()}
    value(net, batch, alpha=0.7)
    assert_close(net.state_dict(), before, rtol=0, atol=0)
    assert all(p.grad is None for p in net.parameters())


@pytest.mark.parametrize("bad", [{"alpha": -1.0}, {"beta": -1.0}])
def test_settings_out_of_range_are_named(bad):
    with pytest.raises(MeadaError, match=next(iter(bad))):
        mldg(**bad)
