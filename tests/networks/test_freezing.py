"""Batch norm that trains its weights and keeps its statistics."""

from copy import deepcopy

import pytest
import torch
from torch import nn

from meada.networks.efficientnet_lite import efficientnet_lite0
from meada.networks.freezing import batch_norm_frozen


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
