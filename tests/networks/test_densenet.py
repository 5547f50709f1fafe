"""DenseNet-BC: counts worked out layer by layer, and dense connection as a law."""

import pytest
import torch
from torch import nn

from meada.errors import MeadaError
from meada.networks.densenet import DenseBottleneck, DenseLayer, densenet, densenet40


def count(net: nn.Module) -> int:
    return sum(p.numel() for p in net.parameters())


def worked_out(n: int, k: int, reduction: float, bottleneck: bool, num_classes: int) -> int:
    """Convolutions have no bias; batch norm has two numbers a channel."""
    total, c = 9 * 3 * 2 * k, 2 * k
    for block in range(3):
        for _ in range(n):
            if bottleneck:
                total += 2 * c + c * 4 * k + 2 * 4 * k + 9 * 4 * k * k
            else:
                total += 2 * c + 9 * c * k
            c += k
        if block < 2:
            kept = int(c * reduction)
            total += 2 * c + c * kept
            c = kept
    return total + 2 * c + (c + 1) * num_classes


@pytest.mark.parametrize(("num_classes", "published"), [(10, 769_162), (100, 800_032)])
def test_count_of_the_paper_s(num_classes: int, published: int) -> None:
    """0.8M in Table 2 of Huang et al., 2017; 769,162 in the CIFAR-10 table of osmr/imgclsmob."""
    assert worked_out(16, 12, 0.5, True, num_classes) == published
    assert count(densenet(num_classes=num_classes)) == published


@pytest.mark.parametrize(("num_classes", "expected"), [(10, 1_059_298), (100, 1_100_428)])
def test_count_of_the_published_code_s(num_classes: int, expected: int) -> None:
    """1.0M in Table 2 of Huang et al., who start from 16 channels and not from 2k = 24."""
    assert worked_out(12, 12, 1.0, False, num_classes) == expected
    assert count(densenet40(num_classes=num_classes)) == expected


def test_the_working_out_agrees_with_the_source_on_others() -> None:
    """25.6M for DenseNet-BC (L = 190, k = 40) and 15.3M for (250, 24), Table 2 of Huang et al."""
    assert round(worked_out(31, 40, 0.5, True, 10) / 1e6, 1) == 25.6
    assert round(worked_out(41, 24, 0.5, True, 10) / 1e6, 1) == 15.3


@pytest.mark.parametrize("layer", [DenseLayer, DenseBottleneck])
def test_a_layer_keeps_its_input_and_adds_growth_channels(layer: type[nn.Module]) -> None:
    x = torch.randn(2, 5, 4, 4)
    out = layer(5, 3)(x)
    assert out.shape == (2, 8, 4, 4)
    assert torch.equal(out[:, :5], x)


def test_blocks_halve_the_map_and_the_channels() -> None:
    net, shapes = densenet(), []
    for name in ("block1", "transition1", "block2", "transition2", "block3"):
        net.get_submodule(name).register_forward_hook(lambda _, __, out: shapes.append(tuple(out.shape[1:])))
    net(torch.rand(1, 3, 32, 32))
    assert shapes == [(216, 32, 32), (108, 16, 16), (300, 16, 16), (150, 8, 8), (342, 8, 8)]


@pytest.mark.parametrize(("depth", "bottleneck"), [(99, True), (4, True), (41, False)])
def test_a_depth_that_does_not_divide_is_refused(depth: int, bottleneck: bool) -> None:
    with pytest.raises(MeadaError, match=f"got {depth}$"):
        densenet(depth=depth, bottleneck=bottleneck)
