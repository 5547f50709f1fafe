"""AlexNet and AllConvNet: layers, sizes and names."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from meada.networks.plain import QuickGELU, alexnet, allconv

TORCHVISION = {  # the state dict of torchvision's alexnet, weight shapes
    "features.0": (64, 3, 11, 11),
    "features.3": (192, 64, 5, 5),
    "features.6": (384, 192, 3, 3),
    "features.8": (256, 384, 3, 3),
    "features.10": (256, 256, 3, 3),
    "classifier.1": (4096, 9216),
    "classifier.4": (4096, 4096),
    "classifier.6": (1000, 4096),
}


def test_names_and_shapes_are_torchvision_s() -> None:
    with torch.device("meta"):
        state = alexnet().state_dict()
    expected = {f"{layer}.weight": shape for layer, shape in TORCHVISION.items()}
    expected |= {f"{layer}.bias": shape[:1] for layer, shape in TORCHVISION.items()}
    assert {name: tuple(value.shape) for name, value in state.items()} == expected


@pytest.mark.parametrize(("num_classes", "expected"), [(1000, 61_100_840), (7, 57_032_519)])
def test_count_of_alexnet(num_classes: int, expected: int) -> None:
    """61,100,840 in torchvision's table of models; each class is 4,096 weights and a bias."""
    assert expected == 61_100_840 - (1000 - num_classes) * 4097
    with torch.device("meta"):
        net = alexnet(num_classes=num_classes)
    assert sum(p.numel() for p in net.parameters()) == expected


@pytest.mark.parametrize("size", [224, 227])
def test_the_convolution_features_are_those_9216_that_the_published_code_compares(
    size: int,
) -> None:
    with torch.device("meta"):
        net, x = alexnet(num_classes=7), torch.rand(2, 3, size, size)
        features = net.features(net.normalise(x))
        assert features.shape == (2, 256, 6, 6)  # so averaging to 6x6 changes nothing
        assert net.avgpool(features).flatten(1).shape == (2, 9216)
        assert net(x).shape == (2, 7)


def test_dropout_comes_before_both_hidden_linear_layers() -> None:
    with torch.device("meta"):
        classifier = alexnet().classifier
    kinds = [type(layer) for layer in classifier]
    hidden = [nn.Dropout, nn.Linear, nn.ReLU]
    assert kinds == [*hidden, *hidden, nn.Linear]
    assert [layer.p for layer in classifier if isinstance(layer, nn.Dropout)] == [0.5, 0.5]


conv_bn = lambda k, i, o: k * k * i * o + o + 2 * o  # weight and bias, then batch norm


@pytest.mark.parametrize("num_classes", [10, 100])
def test_count_of_allconv(num_classes: int) -> None:
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
