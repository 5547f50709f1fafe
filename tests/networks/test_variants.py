"""ResNet v1 against v1.5: the same names and shapes, another function; warned of where a file says so."""

import warnings
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from meada.networks.pretrained import bottleneck_form, load_weights
from meada.networks.resnet import Bottleneck, resnet18


def network() -> nn.Module:
    return nn.Sequential(Bottleneck(4, 2, 2), nn.Flatten(), nn.LazyLinear(2))


@pytest.fixture
def net() -> nn.Module:
    made = network()
    made(torch.rand(2, 4, 4, 4))
    return made


def test_the_form_is_read_off_the_strides(net: nn.Module) -> None:
    assert bottleneck_form(net) == "v1.5"
    net[0].conv1.stride, net[0].conv2.stride = (2, 2), (1, 1)
    assert bottleneck_form(net) == "v1"
    with torch.device("meta"):
        assert bottleneck_form(resnet18()) == ""  # it has no bottlenecks, and one form


@pytest.mark.parametrize("name", ["resnet50_caffe.pth", "resnet50_msra-5891d200.pth", "resnet_v1_50.pth"])
def test_weights_of_the_first_form_are_warned_of(net: nn.Module, tmp_path: Path, name: str) -> None:
    torch.save(net.state_dict(), tmp_path / name)
    with pytest.warns(UserWarning, match=r"says that the 1x1 convolution strides \(ResNet v1\), while in this"):
        load_weights(net, tmp_path / name)


@pytest.mark.parametrize("name", ["resnet50-0676ba61.pth", "resnet50_v1.5.pth", "resnet50_v1b-0ecdba34.pth", "my.pth"])
def test_other_names_are_not(net: nn.Module, tmp_path: Path, name: str) -> None:
    torch.save(net.state_dict(), tmp_path / name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_weights(net, tmp_path / name)


def test_the_metadata_of_a_file_are_read(net: nn.Module, tmp_path: Path) -> None:
    save_file(net.state_dict(), tmp_path / "w.safetensors", metadata={"source": "detectron R-50"})
    with pytest.warns(UserWarning, match="ResNet v1"):
        load_weights(net, tmp_path / "w.safetensors")


def test_the_other_way_round_too(net: nn.Module, tmp_path: Path) -> None:
    net[0].conv1.stride, net[0].conv2.stride = (2, 2), (1, 1)
    torch.save(net.state_dict(), tmp_path / "resnet50-0676ba61.pth")
    with pytest.warns(UserWarning, match="while in this Sequential the 1x1 convolution strides"):
        load_weights(net, tmp_path / "resnet50-0676ba61.pth")
