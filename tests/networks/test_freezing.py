"""Temporary states of a network: frozen, batch norm fixed, channels-last; restored on exit."""

from copy import deepcopy

import pytest
import torch
from torch import nn

from meada.maximise import hard_views, perturb
from meada.networks import NETWORKS, to_bayesian
from meada.networks.efficientnet_lite import efficientnet_lite0
from meada.networks.freezing import batch_norm_frozen, channels_last


def network() -> nn.Sequential:
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.5), nn.Flatten(), nn.Linear(16, 2))
    net(torch.randn(9, 3, 4, 4) * 3 + 1)
    return net


def test_statistics_are_used_and_stay_while_weights_train() -> None:
    net = network()
    x, before = torch.randn(5, 3, 4, 4), deepcopy(net[1].state_dict())
    optimiser = torch.optim.SGD(net.parameters(), lr=0.1)
    with batch_norm_frozen(net):
        for _ in range(2):
            net.train()  # as a loop does
            expected = deepcopy(net[1]).eval()(net[0](x))
            seen: list[torch.Tensor] = []
            hook = net[1].register_forward_hook(lambda _m, _x, out, seen=seen: seen.append(out.detach()))
            net(x).square().sum().backward()
            hook.remove()
            assert torch.equal(seen[0], expected.detach())
            assert net[2].training  # dropout is as the loop wants it
            optimiser.step()
    after = net[1].state_dict()
    for name in ("running_mean", "running_var", "num_batches_tracked"):
        assert torch.equal(after[name], before[name])
    assert not torch.equal(after["weight"], before["weight"])
    assert net[1].training and not net._forward_pre_hooks


def test_it_ends_after_an_error() -> None:
    net = network().eval()
    with pytest.raises(ZeroDivisionError), batch_norm_frozen(net):
        net.train()
        raise ZeroDivisionError
    assert not net[1].training and not net._forward_pre_hooks
    net.train()(torch.randn(5, 3, 4, 4))


def test_a_copy_made_inside_freezes_its_own_layers() -> None:
    net = network()
    with batch_norm_frozen(net):
        other = deepcopy(net)
    other.train()(torch.randn(5, 3, 4, 4))
    assert torch.equal(other[1].running_mean, net[1].running_mean)


def test_lite_networks_train_with_one_convolution_per_norm() -> None:
    """The folded path gives the gradients of the plain one, through the whole network."""
    net = efficientnet_lite0(num_classes=3)
    net.train()(torch.rand(4, 3, 64, 64))
    x, plain = torch.rand(2, 3, 64, 64), deepcopy(net)
    for module in plain.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.eval().register_forward_hook(lambda *_: None)  # a hook asks for the layer itself
    plain(x).square().sum().backward()
    with batch_norm_frozen(net):
        net(x).square().sum().backward()
    for (name, a), b in zip(net.named_parameters(), plain.parameters(), strict=True):
        assert a.grad is not None and b.grad is not None
        assert torch.allclose(a.grad, b.grad, rtol=1e-7, atol=1e-9 * float(b.grad.abs().max())), name


def inside(net: nn.Module) -> list[bool]:
    with channels_last(net):
        return [
            m.weight.is_contiguous(memory_format=torch.channels_last)
            for m in net.modules()
            if isinstance(m, nn.Conv2d) and m.weight.shape[2] > 1
        ]


def test_the_same_parameters_are_back_also_after_an_error() -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Conv2d(4, 4, 3))
    own = list(net.parameters())
    bytes_before = [p.detach().clone() for p in own]
    with pytest.raises(ZeroDivisionError), channels_last(net):
        assert net[0].weight is not own[0]
        raise ZeroDivisionError
    assert all(a is b for a, b in zip(net.parameters(), own, strict=True))
    assert all(torch.equal(a, b) and a.stride() == b.stride() for a, b in zip(own, bytes_before, strict=True))
    assert all(inside(net))


def test_a_shared_weight_stays_shared() -> None:
    net = nn.Sequential(nn.Conv2d(3, 3, 3), nn.Conv2d(3, 3, 3))
    net[1].weight = net[0].weight
    with channels_last(net):
        assert net[1].weight is net[0].weight
    assert net[1].weight is net[0].weight


def test_weights_that_are_computed_are_left_alone() -> None:
    net = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Conv2d(3, 4, 3)))
    x = torch.rand(2, 3, 5, 5)
    expected = net(x)
    with channels_last(net):
        assert torch.equal(net(x), expected)
    bayesian = to_bayesian(nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(36, 2)))
    with channels_last(bayesian):
        assert bayesian.eval()(x).shape == (2, 2)


def test_a_weight_that_carries_more_than_numbers_is_left_alone() -> None:
    class Masked(nn.Conv2d):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self._conv_forward(x, self.weight * self.weight.mask, self.bias)

    net = nn.Sequential(Masked(3, 4, 3))
    net[0].weight.mask = torch.ones(4, 3, 3, 3)
    with channels_last(net):
        assert net(torch.rand(2, 3, 5, 5)).shape == (2, 4, 3, 3)


def test_a_network_that_is_laid_out_so_already_keeps_its_weights_and_bits() -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3)).to(memory_format=torch.channels_last)
    own = net[0].weight
    with channels_last(net):
        assert net[0].weight is own


@pytest.mark.parametrize("name", ["lenet", "wideresnet16_1"])
def test_perturb_uses_it_and_agrees_to_rounding(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In float64, against the same ascent in the network's own layout."""
    net, x, y = NETWORKS[name](num_classes=10), torch.rand(4, 3, 32, 32), torch.arange(4)
    before = deepcopy(net.state_dict())
    settings = {"beta": 1.0, "gamma": 1 / 1024, "step_size": 1 / 32, "steps": 3}
    fast = perturb(net, x, y, **settings)
    first = next(m for m in net.modules() if isinstance(m, nn.Conv2d))
    assert first.weight.is_contiguous()
    assert all(torch.equal(a, b) for a, b in zip(net.state_dict().values(), before.values(), strict=True))
    called: list[nn.Module] = []
    monkeypatch.setattr("meada.networks.freezing._weight_to_convert", called.append)
    plain = perturb(net, x, y, **settings)
    assert called, "perturb asked which layers to lay out"
    assert torch.allclose(fast, plain, atol=1e-9, rtol=0)


def test_hard_views_score_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    net, x, y = NETWORKS["lenet"](num_classes=10), torch.rand(4, 3, 32, 32), torch.arange(4)
    layouts: list[bool] = []
    net[0].register_forward_hook(
        lambda m, _x, out: layouts.append(m.weight.is_contiguous(memory_format=torch.channels_last))
    )
    hard_views(net, x, y, seed=0, k=2)
    assert layouts == [True, True] and not net[0].weight.is_contiguous(memory_format=torch.channels_last)
