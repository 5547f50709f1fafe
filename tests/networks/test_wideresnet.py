"""WideResNet: counts worked out block by block, and its two kinds of shortcut."""

import pytest
import torch
from torch import nn
from torch.nn.functional import relu

from meada.errors import MeadaError
from meada.networks.resnet import WideBlock, wideresnet, wideresnet16_1


def count(net: nn.Module) -> int:
    return sum(p.numel() for p in net.parameters())


def worked_out(depth: int, widen: int, num_classes: int) -> int:
    """Convolutions have no bias; batch norm has two numbers a channel."""
    block = lambda i, o: 2 * i + 9 * i * o + 2 * o + 9 * o * o + (i * o if i != o else 0)
    total, i = 9 * 3 * 16, 16
    for o in (16 * widen, 32 * widen, 64 * widen):
        for _ in range((depth - 4) // 6):
            total += block(i, o)
            i = o
    return total + 2 * i + (i + 1) * num_classes


@pytest.mark.parametrize(("num_classes", "published"), [(10, 2_243_546), (100, 2_255_156)])
def test_count_of_the_paper_s(num_classes: int, published: int) -> None:
    """2.2M for WRN-40-2 in Table 4 of Zagoruyko & Komodakis, 2016."""
    assert worked_out(40, 2, num_classes) == published
    assert count(wideresnet(num_classes=num_classes)) == published


@pytest.mark.parametrize(("depth", "widen", "published"), [(28, 10, 36_479_194), (16, 10, 17_116_634)])
def test_count_of_wider_ones(depth: int, widen: int, published: int) -> None:
    """36.5M and 17.1M in the same paper; to the unit in the CIFAR-10 table of osmr/imgclsmob."""
    with torch.device("meta"):
        assert count(wideresnet(depth=depth, widen=widen)) == published


@pytest.mark.parametrize("num_classes", [10, 100])
def test_count_of_the_small_one(num_classes: int) -> None:
    """Often given as 175,994, which counts the 928 running means and variances in."""
    net = wideresnet16_1(num_classes=num_classes)
    assert count(net) == worked_out(16, 1, num_classes)
    statistics = [b.numel() for name, b in net.named_buffers() if "running" in name]
    assert sum(statistics) == 928
    if num_classes == 10:
        assert count(net) + 928 == 175_994


def silence(block: WideBlock) -> WideBlock:
    """The residual branch gone, the shortcut is left."""
    nn.init.zeros_(block.conv2.weight)
    return block


def test_the_shortcut_is_the_identity_where_the_width_stays() -> None:
    x = torch.randn(4, 6, 5, 5)
    assert torch.equal(silence(WideBlock(6, 6, 1, 0.0))(x), x)


def test_the_shortcut_starts_after_the_activation_where_the_width_changes() -> None:
    x = torch.randn(4, 6, 6, 6)
    block = silence(WideBlock(6, 8, 2, 0.0))
    assert block.shortcut is not None
    expected = nn.functional.conv2d(relu(block.bn1(x)), block.shortcut.weight, stride=2)
    assert torch.allclose(block(x), expected)


def test_maps_halve_twice() -> None:
    net, shapes = wideresnet16_1(), []
    for stage in net.stages:
        stage.register_forward_hook(lambda _, __, out: shapes.append(tuple(out.shape[1:])))
    net(torch.rand(2, 3, 32, 32))
    assert shapes == [(16, 32, 32), (32, 16, 16), (64, 8, 8)]


def test_dropout_lies_between_the_convolutions_of_every_block() -> None:
    net = wideresnet(depth=16, widen=1, dropout=0.3)
    assert [m.p for m in net.modules() if isinstance(m, nn.Dropout)] == [0.3] * 6
    block = WideBlock(4, 4, 1, 1.0).train()  # drops all: the shortcut is left
    x = torch.randn(2, 4, 3, 3)
    assert torch.equal(block(x), x)


@pytest.mark.parametrize("depth", [4, 17, 41])
def test_a_depth_that_does_not_divide_is_refused(depth: int) -> None:
    with pytest.raises(MeadaError, match=f"got {depth}"):
        wideresnet(depth=depth)
