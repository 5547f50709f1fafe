"""ResNet-18 and ResNet-50 for images of ImageNet's kind (PACS), under torchvision's names."""

from collections import OrderedDict

from torch import Tensor, nn
from torch.nn.functional import relu

from meada.networks.normalise import IMAGENET_MEAN, IMAGENET_STD, Normalise


class BasicBlock(nn.Module):
    """Two 3x3 convolutions next to a shortcut."""

    expansion = 1

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = projection(inputs, width, stride)

    def forward(self, x: Tensor) -> Tensor:
        f = relu(self.bn1(self.conv1(x)))
        f = self.bn2(self.conv2(f))
        return relu(f + (x if self.downsample is None else self.downsample(x)))


class Bottleneck(nn.Module):
    """1x1 down, 3x3, 1x1 up, next to a shortcut; the 3x3 strides, as in torchvision."""

    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = self.expansion * width
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.downsample = projection(inputs, outputs, stride)

    def forward(self, x: Tensor) -> Tensor:
        f = relu(self.bn1(self.conv1(x)))
        f = relu(self.bn2(self.conv2(f)))
        f = self.bn3(self.conv3(f))
        return relu(f + (x if self.downsample is None else self.downsample(x)))


def projection(inputs: int, outputs: int, stride: int) -> nn.Sequential | None:
    """The shortcut's 1x1 convolution, or none where the shape does not change."""
    if stride == 1 and inputs == outputs:
        return None
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))


def he_normal(net: nn.Sequential) -> nn.Sequential:
    """Draw every convolution from a normal of variance 2 / (outputs x kernel area); return ``net``.

    He et al., 2015, in the fan-out form that ResNets and the CIFAR networks share.
    """
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return net


def resnet18(num_classes: int = 1000) -> nn.Sequential:
    """ResNet-18; z is the 512 averaged features.

    >>> sum(weight.numel() for weight in resnet18().parameters())
    11689512
    """
    return _resnet(BasicBlock, (2, 2, 2, 2), num_classes)


def resnet50(num_classes: int = 1000) -> nn.Sequential:
    """ResNet-50; z is the 2,048 averaged features."""
    return _resnet(Bottleneck, (3, 4, 6, 3), num_classes)


def _resnet(
    block: type[BasicBlock] | type[Bottleneck], depths: tuple[int, int, int, int], num_classes: int
) -> nn.Sequential:
    parts: OrderedDict[str, nn.Module] = OrderedDict(
        normalise=Normalise(IMAGENET_MEAN, IMAGENET_STD),
        conv1=nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False),
        bn1=nn.BatchNorm2d(64),
        relu=nn.ReLU(),
        maxpool=nn.MaxPool2d(3, stride=2, padding=1),
    )
    inputs = 64
    for stage, depth in enumerate(depths):
        width = 64 * 2**stage
        strides = [1 if stage == 0 else 2] + [1] * (depth - 1)
        layers = nn.Sequential()
        for stride in strides:
            layers.append(block(inputs, width, stride))
            inputs = width * block.expansion
        parts[f"layer{stage + 1}"] = layers
    parts |= OrderedDict(avgpool=nn.AdaptiveAvgPool2d(1), flatten=nn.Flatten(), fc=nn.Linear(inputs, num_classes))
    return he_normal(nn.Sequential(parts))
