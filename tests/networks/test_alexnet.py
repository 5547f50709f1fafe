"""AlexNet: torchvision's names and shapes, so that its published weights load."""

import pytest
import torch
from torch import nn

from meada.networks.alexnet import alexnet

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
def test_count(num_classes: int, expected: int) -> None:
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
