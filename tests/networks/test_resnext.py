"""ResNeXt-29: counts worked out block by block, for the paper's groups and the published code's."""

import math

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from meada.networks.resnet import Bottleneck, resnext, resnext29_4x32


def count(net: nn.Module) -> int:
    return sum(p.numel() for p in net.parameters())


def worked_out(cardinality: int, base_width: int, num_classes: int) -> int:
    """Convolutions have no bias, batch norm two numbers a channel; groups share out the weights."""
    total, i = 9 * 3 * 64 + 2 * 64, 64
    for scale in (1, 2, 4):
        w, o = cardinality * base_width * scale, 256 * scale
        for _ in range(3):
            total += i * w + 2 * w + 9 * w * w // cardinality + 2 * w + w * o + 2 * o
            total += (i * o + 2 * o) if i != o else 0
            i = o
    return total + (i + 1) * num_classes


@pytest.mark.parametrize(("num_classes", "published"), [(10, 4_775_754), (100, 4_868_004)])
def test_count_of_the_paper_s(num_classes: int, published: int) -> None:
    """4,775,754 for ResNeXt-29 (32x4d) in the CIFAR-10 table of osmr/imgclsmob."""
    assert worked_out(32, 4, num_classes) == published
    assert count(resnext(num_classes=num_classes)) == published


@pytest.mark.parametrize(("num_classes", "expected"), [(10, 6_807_882), (100, 6_900_132)])
def test_count_of_the_published_code_s(num_classes: int, expected: int) -> None:
    assert worked_out(4, 32, num_classes) == expected
    assert count(resnext29_4x32(num_classes=num_classes)) == expected


@pytest.mark.parametrize(("cardinality", "millions"), [(8, 34.4), (16, 68.2)])
def test_count_of_wider_ones(cardinality: int, millions: float) -> None:
    """34.4M and 68.1M (it is 68.155M) in Table 7 of Xie et al., 2017."""
    with torch.device("meta"):
        assert round(count(resnext(cardinality=cardinality, base_width=64)) / 1e6, 1) == millions


def test_maps_halve_twice() -> None:
    net, shapes = resnext(), []
    for stage in net.stages:
        stage.register_forward_hook(lambda _, __, out: shapes.append(tuple(out.shape[1:])))
    net(torch.rand(1, 3, 32, 32))
    assert shapes == [(256, 32, 32), (512, 16, 16), (1024, 8, 8)]


@pytest.mark.parametrize("build", [resnext, resnext29_4x32])
def test_the_learning_rate_of_table_3_is_stable_at_first(build) -> None:
    """By the largest eigenvalue of the head's Hessian, worked out by autograd, against the bound
    (2 + 2m) / (1 + 2m) of Nesterov's method on a quadratic."""
    torch.manual_seed(0)
    net, x, y = build(), torch.rand(8, 3, 32, 32), torch.arange(8)
    z = net[:-1](x).detach()

    def risk(weight: torch.Tensor) -> torch.Tensor:
        return cross_entropy(z @ weight.view(10, -1).T, y)

    w, v = net.head.weight.detach().flatten(), torch.randn(10 * 1024)
    for _ in range(20):
        _, product = torch.autograd.functional.hvp(risk, w, v / v.norm())
        v = product
    assert 0.1 * v.norm() < (2 + 2 * 0.9) / (1 + 2 * 0.9)


def test_groups_do_not_talk_in_the_middle_convolution() -> None:
    block = Bottleneck(8, 12, 1, 8, groups=3, shortcut="shortcut")
    a = torch.randn(1, 12, 5, 5, requires_grad=True)
    block.conv2(a)[:, :4].sum().backward()  # the first group's outputs
    assert a.grad is not None
    assert a.grad[:, :4].abs().sum() > 0
    assert not a.grad[:, 4:].any()


def test_a_block_without_its_branch_is_its_activated_input() -> None:
    block = Bottleneck(8, 12, 1, 8, groups=3, shortcut="shortcut")
    nn.init.zeros_(block.conv3.weight)
    x = torch.randn(2, 8, 5, 5)
    assert torch.equal(block(x), x.relu())


def test_the_head_starts_as_he_et_al_draw_it() -> None:
    head = resnext(num_classes=100).head
    assert isinstance(head, nn.Linear)
    assert head.weight.std().item() == pytest.approx(math.sqrt(2 / 1024), rel=0.02)
