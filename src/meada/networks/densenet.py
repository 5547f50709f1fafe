"""DenseNet-BC, the CIFAR network of Table 3 in which every layer reads all the layers before it."""

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from meada.errors import MeadaError
from meada.networks.resnet import cifar_network, zero_bias_head


class DenseLayer(nn.Module):
    """A 3x3 convolution whose ``growth`` output channels are concatenated to its input."""

    def __init__(self, inputs: int, growth: int) -> None:
        super().__init__()
        self.bn = nn.BatchNorm2d(inputs)
        self.conv = nn.Conv2d(inputs, growth, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat((x, self.conv(relu(self.bn(x)))), dim=1)


class DenseBottleneck(nn.Module):
    """A DenseLayer after a 1x1 convolution to four times ``growth`` channels: the B of DenseNet-BC."""

    def __init__(self, inputs: int, growth: int) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, 4 * growth, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(4 * growth)
        self.conv2 = nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        f = self.conv1(relu(self.bn1(x)))
        return torch.cat((x, self.conv2(relu(self.bn2(f)))), dim=1)


def densenet(
    num_classes: int = 10, *, depth: int = 100, growth: int = 12, reduction: float = 0.5, bottleneck: bool = True
) -> nn.Sequential:
    """DenseNet of Huang et al., 2017: k = ``growth`` channels a layer, in three blocks.

    The transitions between the blocks keep a fraction ``reduction`` of the channels (the C of
    DenseNet-BC). The paper's has k = 12 and d = 100, where z is the 342 averaged features.

    >>> sum(weight.numel() for weight in densenet().parameters())
    769162
    """
    layer, each, how = (DenseBottleneck, 6, "with") if bottleneck else (DenseLayer, 3, "without")
    n, rest = divmod(depth - 4, each)
    if n < 1 or rest:
        raise MeadaError(f"depth of a DenseNet {how} bottlenecks must be {each}n + 4, got {depth}")
    channels = 2 * growth
    blocks: dict[str, nn.Module] = {}
    conv = nn.Conv2d(3, channels, 3, padding=1, bias=False)
    for block in (1, 2, 3):
        widths = range(channels, channels + n * growth, growth)
        blocks[f"block{block}"] = nn.Sequential(*(layer(width, growth) for width in widths))
        channels += n * growth
        if block < 3:
            kept = int(reduction * channels)
            narrow = nn.Conv2d(channels, kept, 1, bias=False)
            blocks[f"transition{block}"] = nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU(), narrow, nn.AvgPool2d(2))
            channels = kept
    head = zero_bias_head(channels, num_classes)
    return cifar_network(head, conv=conv, **blocks, bn=nn.BatchNorm2d(channels), relu=nn.ReLU())


def densenet40(num_classes: int = 10) -> nn.Sequential:
    """What the published code trains as DenseNet: k = 12, d = 40, neither B nor C."""
    return densenet(num_classes, depth=40, growth=12, reduction=1.0, bottleneck=False)
