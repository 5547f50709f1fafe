"""The ascent: the paper's update, sample by sample, and a network left as it was."""

from copy import deepcopy

import pytest
import torch
from torch import nn
from torch.nn.functional import cosine_similarity, one_hot
from torch.testing import assert_close

import meada
from meada.entropy import softmax_entropy
from meada.errors import MeadaError, NonFiniteError
from meada.maximise import ascend, perturb, unit_rms
from meada.networks.posterior import Posterior
from meada.spaces.pixels import pixels

PAPER = {"beta": 0.7, "gamma": 1.3, "step_size": 1e-3}


class Residual(nn.Module):
    """A network with a forward of its own, batch norm, dropout and two Linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.GELU())
        self.branch = nn.Conv2d(6, 6, 3, padding=1)
        self.hidden = nn.Linear(6 * 16, 8)
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(8, 5)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1  # a buffer that moves even in eval mode
        x = self.stem(x)
        x = x + self.branch(x)
        return self.head(self.drop(self.hidden(x.flatten(1)).tanh()))


def independent(net, x0, y, *, beta, gamma, eta, steps):
    """The printed update, one sample at a time, with no code of the package."""
    net = deepcopy(net).eval()
    out = []
    for one, label in zip(x0, y, strict=True):
        z0, x = None, one[None].clone()
        for _ in range(steps):
            x = x.detach().requires_grad_()
            seen = []
            hook = net.head.register_forward_pre_hook(lambda m, a, seen=seen: seen.append(a[0]))
            p = torch.softmax(net(x), 1)
            hook.remove()
            z0 = seen[0].detach() if z0 is None else z0
            value = -p[0, label].log() - beta * (p * p.log()).sum()
            value = value - gamma * ((seen[0] - z0) ** 2).sum()
            value.backward()
            x = x + eta * x.grad
        out.append(x.detach().clamp(0, 1))
    return torch.cat(out)


def snapshot(net):
    return (
        {k: v.clone() for k, v in net.state_dict().items()},
        [(p.requires_grad, None if p.grad is None else p.grad.clone()) for p in net.parameters()],
        [m.training for m in net.modules()],
        [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in net.modules()],
    )


def test_one_step_matches_the_gradient_worked_out_by_hand(linear_net, batch):
    x, y = batch
    w, logits = linear_net[1].weight, linear_net(x)
    log_p = logits.log_softmax(-1)
    p, h = log_p.exp(), softmax_entropy(logits)
    grad_ce = (p - one_hot(y, 5)) @ w
    grad_h = -(p * (log_p + h[:, None])) @ w
    want = x + 1e-3 * (grad_ce + 0.7 * grad_h).view_as(x)  # the cost's gradient is 0 at x0
    got = perturb(linear_net, x, y, **PAPER, steps=1)
    assert_close(got, want.clamp(0, 1).detach(), rtol=0, atol=1e-12)


def test_the_second_step_feels_the_cost_worked_out_by_hand(linear_net, batch):
    """z is the flat image here, so the cost's gradient is 2 (x1 - x0)."""
    x, y = batch
    go = lambda gamma, steps: perturb(linear_net, x, y, beta=0.0, gamma=gamma, step_size=1e-3, steps=steps)
    inside = (go(1.3, 2) > 0) & (go(1.3, 2) < 1) & (go(0.0, 2) > 0) & (go(0.0, 2) < 1)
    pull = -1e-3 * 1.3 * 2 * (go(0.0, 1) - x)
    assert_close(go(1.3, 2)[inside], (go(0.0, 2) + pull)[inside], rtol=0, atol=1e-12)


def test_a_network_of_somebody_else_follows_the_printed_update(batch):
    net = Residual()
    got = perturb(net, *batch, beta=2.0, gamma=0.5, step_size=0.05, steps=6)
    want = independent(net, *batch, beta=2.0, gamma=0.5, eta=0.05, steps=6)
    assert_close(got, want, rtol=0, atol=1e-9)


def test_single_precision_follows_it_too(single):
    net, x, y = Residual().float(), torch.rand(6, 3, 4, 4), torch.randint(5, (6,))
    got = perturb(net, x, y, beta=2.0, gamma=0.5, step_size=0.05, steps=6)
    want = independent(net, x, y, beta=2.0, gamma=0.5, eta=0.05, steps=6)
    assert got.dtype == torch.float32
    assert_close(got, want, rtol=0, atol=1e-5)


@pytest.mark.parametrize("pieces", [[6], [1, 5], [2, 2, 2], [4, 2]])
def test_a_sample_moves_alike_in_any_batch(batch, pieces):
    net, settings = Residual(), {"beta": 10.0, "gamma": 1.0, "step_size": 0.1, "steps": 5}
    whole = perturb(net, *batch, **settings)
    parts = zip(*(t.split(pieces) for t in batch), strict=True)
    apart = torch.cat([perturb(net, x, y, **settings) for x, y in parts])
    assert_close(whole, apart, rtol=0, atol=1e-9)


def test_blocks_are_only_a_way_to_compute(batch):
    net = Residual()
    assert_close(perturb(net, *batch, **PAPER, steps=3), perturb(net, *batch, **PAPER, steps=3, block=4))


@pytest.mark.parametrize("block, sizes", [(None, [128, 128, 44]), (0, [300]), (200, [200, 100])])
def test_a_large_batch_is_climbed_in_blocks(block, sizes):
    net, seen = nn.Sequential(nn.Flatten(), nn.Linear(4, 2)), []
    net.register_forward_pre_hook(lambda _, given: seen.append(len(given[0])))
    perturb(net, torch.rand(300, 1, 2, 2), torch.zeros(300, dtype=torch.long), steps=1, block=block)
    assert seen == sizes


@pytest.mark.parametrize("mode", ["train", "eval", "mixed"])
def test_the_network_is_left_as_it_was(batch, mode):
    net = Residual().train(mode != "eval")
    if mode == "mixed":
        net.stem.eval()
        net.branch.weight.requires_grad_(False)
    net(batch[0]).sum().backward()
    before = snapshot(net)
    perturb(net, *batch, **PAPER, steps=3)
    assert_close(before, snapshot(net), rtol=0, atol=0)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, RuntimeError])
def test_also_when_it_is_interrupted(batch, stop):
    net = Residual().train()
    before = snapshot(net)
    calls = []

    def interrupt(*_):
        calls.append(1)
        if len(calls) == 3:
            raise stop

    handle = net.branch.register_forward_hook(interrupt)
    with pytest.raises(stop):
        perturb(net, *batch, **PAPER, steps=5)
    handle.remove()
    assert_close(before, snapshot(net), rtol=0, atol=0)


def test_the_ascent_runs_in_eval_mode(batch):
    net = Residual().train()  # dropout and batch statistics would show
    in_training = perturb(net, *batch, **PAPER, steps=2)
    assert torch.equal(in_training, perturb(net.eval(), *batch, **PAPER, steps=2))


def test_stochastic_layers_stay_so_by_name(batch):
    net = Residual().eval()
    plain = perturb(net, *batch, **PAPER, steps=2)
    noisy = perturb(net, *batch, **PAPER, steps=2, posterior=Posterior(stochastic=["drop"]))
    assert not torch.equal(plain, noisy) and not net.drop.training
    with pytest.raises(MeadaError, match="did you mean 'drop'"):
        perturb(net, *batch, **PAPER, steps=2, posterior=Posterior(stochastic=["dropp"]))


def test_no_gradient_of_a_weight_is_computed(batch):
    net = Residual()
    wanted = []
    net.branch.register_forward_hook(lambda m, a, o: wanted.append(m.weight.requires_grad))
    perturb(net, *batch, **PAPER, steps=2)
    assert wanted == [False, False]


def test_pixels_end_in_range_and_are_clamped_only_at_the_end(linear_net, batch):
    x, y = batch
    far = perturb(linear_net, x, y, beta=0.0, gamma=0.0, step_size=50.0, steps=3)
    assert far.min() == 0 and far.max() == 1
    x0 = torch.zeros(1, 3, 4, 4)
    up = perturb(linear_net, x0, y[:1], beta=0.0, gamma=0.0, step_size=1e-2, steps=2)
    path = x0.clone()
    for _ in range(2):  # below zero in between, were it not clamped only at the end
        path = path.detach().requires_grad_()
        torch.nn.functional.cross_entropy(linear_net(path), y[:1]).backward()
        path = path + 1e-2 * path.grad
    assert_close(up, path.detach().clamp(0, 1))


def test_a_step_size_a_channel(linear_net, batch):
    x, y = batch
    eta = torch.tensor([0.0, 1e-3, 2e-3])
    moved = perturb(linear_net, x, y, beta=0.0, gamma=0.0, step_size=eta, steps=1) - x
    one = perturb(linear_net, x, y, beta=0.0, gamma=0.0, step_size=1e-3, steps=1) - x
    assert_close(moved[:, 0], torch.zeros_like(moved[:, 0]))
    assert_close(moved[:, 1], one[:, 1])
    shaped = perturb(linear_net, x, y, beta=0.0, gamma=0.0, step_size=eta.view(3, 1, 1), steps=1)
    assert torch.equal(shaped, moved + x)


def test_a_unit_step_has_its_length_whatever_the_gradients(linear_net, batch):
    """Sure and unsure samples move equally far, along the same direction as with ``unit=False``."""
    x, y = batch
    x = 0.25 + 0.5 * x  # away from the clamp
    sure = deepcopy(linear_net)
    sure[1].weight.data *= 30.0
    for net in (linear_net, sure):
        moved = perturb(net, x, y, beta=0.7, gamma=0.0, step_size=0.01, steps=1, unit=True) - x
        assert_close(moved.square().mean((1, 2, 3)).sqrt(), torch.full((len(x),), 0.01))
        plain = perturb(net, x, y, beta=0.7, gamma=0.0, step_size=1e-6, steps=1) - x
        along = cosine_similarity(moved.flatten(1), plain.flatten(1))
        assert_close(along, torch.ones(len(x)), rtol=0, atol=1e-6)


def test_a_unit_step_of_a_vanishing_gradient(single):
    tiny = torch.full((2, 3, 4, 4), 1e-30)  # its square is zero in single precision
    tiny[1] = 0.0
    assert_close(unit_rms(tiny), torch.stack([torch.ones(3, 4, 4), torch.zeros(3, 4, 4)]))


def test_the_callers_no_grad_does_not_matter(linear_net, batch):
    want = perturb(linear_net, *batch, **PAPER, steps=2)
    with torch.no_grad():
        assert torch.equal(want, perturb(linear_net, *batch, **PAPER, steps=2))
    with torch.inference_mode():
        assert torch.equal(want, perturb(linear_net, *batch, **PAPER, steps=2))


def test_a_dear_enough_cost_holds_the_sample_still(linear_net, batch):
    go = lambda gamma: perturb(linear_net, *batch, beta=0.0, gamma=gamma, step_size=1e-3, steps=20)
    assert (go(100.0) - batch[0]).norm() < (go(0.0) - batch[0]).norm()


def test_entropy_rises_with_beta(linear_net, batch):
    go = lambda beta: perturb(linear_net, *batch, beta=beta, gamma=0.0, step_size=1e-2, steps=20)
    assert softmax_entropy(linear_net(go(10.0))).mean() > softmax_entropy(linear_net(go(0.0))).mean()


def test_a_number_that_is_none_is_an_error_with_its_place(linear_net, batch):
    x, y = batch
    poisoned = x.clone()
    poisoned[2] = float("nan")
    with pytest.raises(MeadaError, match="images must be finite, got 48 values"):
        perturb(linear_net, poisoned, y, **PAPER, steps=3)
    score = lambda v, step: (poisoned if step else v).flatten(1).sum(1) + v.flatten(1).sum(1)
    with pytest.raises(NonFiniteError, match="step 2 of 3: .* 1 of 6 samples"):
        ascend(score, pixels(), x, {"image": x}, steps=3, step_size=0.1)
    net = deepcopy(linear_net)
    nn.init.constant_(net[1].weight, 1e300)
    with pytest.raises(NonFiniteError, match="of 6 samples"):
        perturb(net, x, y, beta=1.0, gamma=1.0, step_size=1e300, steps=3)


def test_bad_input_is_named(linear_net, batch):
    x, y = batch
    with pytest.raises(MeadaError, match="divide by 255"):
        perturb(linear_net, x * 255, y, **PAPER, steps=1)
    with pytest.raises(MeadaError, match="one label per image, got 6 images and 5 labels"):
        perturb(linear_net, x, y[:5], **PAPER, steps=1)
    with pytest.raises(MeadaError, match="labels must be in 0..4.* got 9 to 9"):
        perturb(linear_net, x, torch.full_like(y, 9), **PAPER, steps=1)
    with pytest.raises(MeadaError, match=r"shape \(N, C, H, W\), got \(3, 4, 4\)"):
        perturb(linear_net, x[0], y[:3], **PAPER, steps=1)


def test_nothing_in_nothing_out(linear_net):
    x = torch.rand(0, 3, 4, 4)
    assert perturb(linear_net, x, torch.zeros(0).long(), **PAPER, steps=2).shape == x.shape


def test_the_public_name_is_this_function():
    assert meada.perturb is perturb
