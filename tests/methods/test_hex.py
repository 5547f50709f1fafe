"""HEX: what is learnt on is orthogonal to texture, and what predicts has never seen it."""

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.testing import assert_close

from meada.algorithm import begin
from meada.errors import MeadaError
from meada.methods.hex import TextureBranch, hex_, without
from meada.methods.method import Context
from meada.methods.parts.descent import Descent
from meada.pool import Pool

SGD = Descent(name="sgd", lr=0.1)


@pytest.fixture
def pool() -> Pool:
    return Pool(torch.rand(12, 3, 8, 8), torch.arange(12) % 3)


@pytest.fixture
def net() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(192, 3))


def test_what_is_learnt_on_is_orthogonal_to_the_textures_subspace(pool, net):
    batch = pool.batch(torch.arange(12))
    f_g = TextureBranch(3, levels=16, side=8, width=32)(batch.x)
    f_l = without(net(batch.x) + f_g, f_g)
    assert (f_g.T @ f_l).abs().max() < 1e-6 * f_g.norm() * f_l.norm()
    assert f_l.norm() > 1e-2  # and it is not nothing


def test_the_projection_is_that_of_least_squares():
    f_a, f_g = torch.randn(9, 4), torch.randn(9, 4)
    residual = f_a - f_g @ torch.linalg.lstsq(f_g, f_a).solution
    assert_close(without(f_a, f_g), residual, rtol=0, atol=1e-7)
    assert_close(without(f_a + f_g @ torch.randn(4, 4), f_g), residual, rtol=0, atol=1e-6)


def test_flat_texture_and_few_images_stay_finite():
    f_a = torch.randn(3, 4, requires_grad=True)
    for f_g in (torch.zeros(3, 4), torch.ones(3, 4), torch.randn(3, 4)):
        value = without(f_a, f_g.requires_grad_()).square().sum()
        (g,) = torch.autograd.grad(value, f_g, retain_graph=True)
        assert value.isfinite() and g.isfinite().all()


def test_prediction_does_not_use_texture(pool, net):
    method = hex_()
    adapted = method.adapt(net)
    assert adapted is net  # the network itself predicts: F_P
    training = begin(net, pool, method, SGD)
    batch = pool.batch(torch.arange(12))
    before = net(batch.x)
    with torch.no_grad():
        for weight in training.parts.modules.parameters():
            weight.fill_(7.0)
    assert_close(net(batch.x), before, rtol=0, atol=0)


def test_the_loss_is_that_of_f_l_and_reaches_both_branches(pool, net):
    method = hex_()
    training = begin(net, pool, method, SGD)
    batch, branch = pool.batch(torch.arange(12)), training.parts.modules["texture"]
    f_p, f_g = net(batch.x), branch(batch.x)
    hat = f_g @ torch.linalg.pinv(f_g)  # onto the columns of F_G
    want = cross_entropy(f_p + f_g - hat @ (f_p + f_g), batch.y)
    got = method.loss(net, batch, Context(parts=training.parts))
    assert_close(got, want, rtol=0, atol=1e-6)
    got.backward()
    assert all(p.grad is not None and p.grad.any() for p in net.parameters())
    assert branch.features.weight.grad.any() and branch.readout.weight.grad.any()
    held = {id(p) for p in training.parts.optimisers["texture"].param_groups[0]["params"]}
    assert held == {id(p) for p in branch.parameters()}


def test_before_its_time_it_is_erm(pool, net):
    method = hex_(after=0.5)
    training = begin(net, pool, method, SGD)
    batch = pool.batch(torch.arange(12))
    loss = lambda step: method.loss(net, batch, Context(parts=training.parts, step=step, total_steps=10))
    erm = cross_entropy(net(batch.x), batch.y)
    assert_close(loss(4), erm)
    assert (loss(5) - erm).abs() > 1e-4


def test_a_co_occurrence_worked_out_by_hand():
    """Two grey levels, a 2x2 image: one pixel (level 1) with one neighbour (level 0)."""
    branch = TextureBranch(2, levels=2, side=2, width=3)
    with torch.no_grad():
        branch.difference.copy_(torch.tensor([0.25, 3.0]))
        branch.level.copy_(torch.tensor([0.5, -1.0]))
    x = torch.tensor([[0.9, 0.0], [0.0, 0.1]]).expand(1, 3, 2, 2)
    # difference 1 - 0: 0.75 and below the least; level 1: 0.5 and above the most
    want = [0.75 * 0.5, 0.75 * 1.0, 1e-5 * 0.5, 1e-5 * 1.0]
    assert_close(branch.nglcm(x)[0], torch.tensor(want))


def test_texture_is_what_it_reads():
    branch = TextureBranch(2, levels=16, side=8, width=3)
    flat, fine = torch.full((1, 3, 8, 8), 0.5), torch.zeros(1, 3, 8, 8)
    fine[..., ::2] = 1.0  # the same mean
    assert (branch.nglcm(flat) - branch.nglcm(fine)).abs().max() > 0.1
    x = torch.rand(1, 3, 8, 8)
    assert_close(branch.nglcm(x), branch.nglcm(x.flip(1)))  # colour is none of its business


@pytest.mark.parametrize("bad", [{"lr": 0.0}, {"levels": 1}, {"side": 1}, {"after": 1.0}])
def test_settings_out_of_range_are_named(bad):
    with pytest.raises(MeadaError, match=next(iter(bad))):
        hex_(**bad)
