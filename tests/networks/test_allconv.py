"""AllConvNet: its count worked out by hand, and what is peculiar to it."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from meada.networks.allconv import QuickGELU, allconv

conv_bn = lambda k, i, o: k * k * i * o + o + 2 * o  # weight and bias, then batch norm


@pytest.mark.parametrize("num_classes", [10, 100])
def test_count(num_classes: int) -> None:
    """The form in the published code has 1,409,674 for 10 classes; the sum is over its layers."""
    worked_out = (
        (conv_bn(3, 3, 96) + 2 * conv_bn(3, 96, 96))
        + (conv_bn(3, 96, 192) + 2 * conv_bn(3, 192, 192))
        + (conv_bn(3, 192, 192) + 2 * conv_bn(1, 192, 192))
        + (192 + 1) * num_classes
    )
    assert {10: 1_409_674, 100: 1_427_044}[num_classes] == worked_out
    assert sum(p.numel() for p in allconv(num_classes=num_classes).parameters()) == worked_out


def test_the_unit_is_close_to_the_gaussian_one_and_not_equal_to_it() -> None:
    x = torch.linspace(-6, 6, 2001)
    error = (QuickGELU()(x) - gelu(x)).abs().max().item()
    assert error == pytest.approx(0.0203, abs=1e-4)  # Hendrycks & Gimpel's approximation


def test_padding_widens_the_map_of_the_pointwise_layers() -> None:
    sizes: list[int] = []
    net = allconv().eval()
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            module.register_forward_hook(lambda _, __, out: sizes.append(out.shape[-1]))
    net(torch.rand(1, 3, 32, 32))
    assert sizes == [32, 32, 32, 16, 16, 16, 6, 8, 10]


def test_the_average_is_over_the_first_eight_by_eight() -> None:
    net = allconv().eval()
    seen: list[Tensor] = []
    net.features[-1].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    net.head.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    net(torch.rand(2, 3, 32, 32))
    maps, z = seen
    assert torch.allclose(z, maps[:, :, :8, :8].mean((2, 3)))


def test_half_of_the_features_drop_out_in_training_alone() -> None:
    dropouts = [m for m in allconv().modules() if isinstance(m, nn.Dropout)]
    assert [d.p for d in dropouts] == [0.5, 0.5]


@pytest.mark.parametrize("size", [24, 28, 64, 96])
def test_other_sizes_of_image(size: int) -> None:
    assert allconv().eval()(torch.rand(1, 3, size, size)).shape == (1, 10)
