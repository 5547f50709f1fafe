"""ResNet-18 and ResNet-50: torchvision's names and shapes, so that its published weights load."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn

from meada.networks.resnet import BasicBlock, Bottleneck, resnet18, resnet50

Shapes = Iterator[tuple[str, tuple[int, ...]]]


def batch_norm(name: str, channels: int) -> Shapes:
    for part in ("weight", "bias", "running_mean", "running_var"):
        yield f"{name}.{part}", (channels,)
    yield f"{name}.num_batches_tracked", ()


def torchvision(depths: tuple[int, ...], bottleneck: bool) -> Shapes:
    """The state dict of torchvision's resnet, written down from its layout."""
    yield "conv1.weight", (64, 3, 7, 7)
    yield from batch_norm("bn1", 64)
    i = 64
    for stage, depth in enumerate(depths, start=1):
        w = 32 * 2**stage
        o = 4 * w if bottleneck else w
        for block in range(depth):
            at = f"layer{stage}.{block}"
            convs = [(w, i, 1), (w, w, 3), (o, w, 1)] if bottleneck else [(w, i, 3), (w, w, 3)]
            for n, (rows, columns, k) in enumerate(convs, start=1):
                yield f"{at}.conv{n}.weight", (rows, columns, k, k)
                yield from batch_norm(f"{at}.bn{n}", rows)
            if block == 0 and i != o:
                yield f"{at}.downsample.0.weight", (o, i, 1, 1)
                yield from batch_norm(f"{at}.downsample.1", o)
            i = o
    yield "fc.weight", (1000, i)
    yield "fc.bias", (1000,)


@pytest.mark.parametrize(
    ("make", "depths", "bottleneck", "entries", "count"),
    [
        (resnet18, (2, 2, 2, 2), False, 122, 11_689_512),
        (resnet50, (3, 4, 6, 3), True, 320, 25_557_032),
    ],
)
def test_names_shapes_and_counts_are_torchvision_s(
    make: Callable[[], nn.Module],
    depths: tuple[int, ...],
    bottleneck: bool,
    entries: int,
    count: int,
) -> None:
    """The numbers of weights are those of torchvision's table of models."""
    with torch.device("meta"):
        net = make()
    state = {name: tuple(value.shape) for name, value in net.state_dict().items()}
    assert state == dict(torchvision(depths, bottleneck))
    assert len(state) == entries
    assert sum(p.numel() for p in net.parameters()) == count


@pytest.mark.parametrize(("make", "widths"), [(resnet18, 64), (resnet50, 256)])
def test_maps_halve_from_stage_to_stage(make: Callable[..., nn.Module], widths: int) -> None:
    shapes = []
    with torch.device("meta"):
        net = make(num_classes=7)
        for stage in ("layer1", "layer2", "layer3", "layer4"):
            net.get_submodule(stage).register_forward_hook(
                lambda _, __, out: shapes.append((out.shape[1] // widths, *out.shape[2:]))
            )
        assert net(torch.rand(2, 3, 224, 224)).shape == (2, 7)
    assert shapes == [(1, 56, 56), (2, 28, 28), (4, 14, 14), (8, 7, 7)]


def test_the_middle_convolution_of_a_bottleneck_strides() -> None:
    """Weights of torchvision's form give other features where the first one strides."""
    with torch.device("meta"):
        net = resnet50()
    for stage in (net.layer2, net.layer3, net.layer4):
        block = stage[0]
        assert isinstance(block, Bottleneck)
        assert (block.conv1.stride, block.conv2.stride) == ((1, 1), (2, 2))


@pytest.mark.parametrize("block", [BasicBlock(4, 4, 1), Bottleneck(4, 1, 1)])
def test_a_block_without_its_branch_is_its_activated_input(block: BasicBlock | Bottleneck) -> None:
    last = block.bn3 if isinstance(block, Bottleneck) else block.bn2
    nn.init.zeros_(last.weight)
    x = torch.randn(2, 4, 5, 5)
    assert torch.equal(block.double()(x), x.relu())
