"""The bare loop does the network's own products, no fewer and no others."""

import pytest
import torch
from benchmarks import peak
from benchmarks.peak import LAYOUTS, fastest, gemm_rate, operations, products, run
from torch import nn


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))
def test_products_are_forward_and_input_gradient_of_each_layer(layout, monkeypatch):
    """With ones for data both have the values that autograd gives."""
    monkeypatch.setattr(torch, "rand_like", torch.ones_like)
    conv = nn.Conv2d(3, 5, 3, stride=2, padding=1, bias=False)
    linear = nn.Linear(5 * 16, 7, bias=False)
    net = nn.Sequential(conv, nn.ReLU(), nn.Flatten(), linear)
    got = [product() for product in products(net, torch.rand(2, 3, 8, 8), layout)]
    for layer, shape, result in zip((conv, linear), ((2, 3, 8, 8), (2, 80)), got, strict=True):
        x = torch.ones(shape, requires_grad=True)
        y = layer(x)
        (back,) = torch.autograd.grad(y.sum(), x)
        assert torch.allclose(result[0], y)
        there_and_back = result[1][0] if isinstance(layer, nn.Conv2d) else result[1]
        assert torch.allclose(there_and_back, back)


def test_weight_gradients_are_not_part_of_it():
    net = nn.Sequential(nn.Conv2d(3, 5, 3))
    (product,) = products(net, torch.rand(2, 3, 8, 8), torch.channels_last)
    assert product()[1][1] is None and product()[1][2] is None


def test_a_layer_used_twice_counts_twice():
    layer = nn.Linear(4, 4)
    net = nn.Sequential(layer, nn.ReLU(), layer)
    x = torch.rand(3, 4)
    assert len(products(net, x.view(3, 1, 1, 4), torch.contiguous_format)) == 2


def test_operations_of_a_grouped_convolution_by_hand():
    net = nn.Conv2d(4, 8, 3, groups=2)  # 8 * 36 places of 2 * 9 products, there and back
    assert operations(net, torch.rand(1, 4, 8, 8)) == 4 * 8 * 36 * 18


def test_the_faster_layout_is_taken(subject, monkeypatch):
    times = {"channels first": [9.0, 3.0, 1.0], "channels last": [0.1, 2.0, 2.0]}
    monkeypatch.setattr(peak, "interleave", lambda sides, rounds: times)
    name, these = fastest(subject.net, torch.rand(2, 3, 8, 8))
    assert name == "channels first" and len(these) == 3  # the first round only warms up
    run(these)


def test_the_network_is_left_as_it_was(subject):
    net = subject.net.train()
    before = {k: v.clone() for k, v in net.state_dict().items()}
    products(net, torch.rand(2, 3, 8, 8), torch.channels_last)
    assert net.training and all(torch.equal(v, before[k]) for k, v in net.state_dict().items())
    assert not any(m._forward_hooks for m in net.modules())


def test_the_rate_of_a_product_is_two_n_cubed_over_its_time(monkeypatch):
    monkeypatch.setattr(peak, "interleave", lambda sides, rounds: {"gemm": [9.0, 0.5, 1.0, 2.0]})
    rate = gemm_rate(rounds=3, n=100)
    assert (rate.low, rate.median, rate.high) == pytest.approx((1e-3, 2e-3, 4e-3))
