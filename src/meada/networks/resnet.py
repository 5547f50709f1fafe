"""Residual networks: ResNet for photographs under torchvision's names, ResNeXt and WideResNet for CIFAR (Table 3)."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence

from torch import Tensor, nn
from torch.nn.functional import relu

from meada.errors import MeadaError
from meada.networks.normalise import CIFAR_MEAN, CIFAR_STD, IMAGENET_MEAN, IMAGENET_STD, Normalise


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
    """1x1 down, 3x3 in ``groups``, 1x1 up, next to a shortcut; the 3x3 has the stride, as in torchvision.

    ``shortcut`` is the name that the shortcut's weights go by in state dicts.
    """

    expansion = 4

    def __init__(
        self, inputs: int, width: int, stride: int, outputs: int = 0, groups: int = 1, shortcut: str = "downsample"
    ) -> None:
        super().__init__()
        outputs = outputs or self.expansion * width
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, groups=groups, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.shortcut_name = shortcut
        self.add_module(shortcut, projection(inputs, outputs, stride))

    def forward(self, x: Tensor) -> Tensor:
        f = relu(self.bn1(self.conv1(x)))
        f = relu(self.bn2(self.conv2(f)))
        f = self.bn3(self.conv3(f))
        shortcut = getattr(self, self.shortcut_name)
        return relu(f + (x if shortcut is None else shortcut(x)))


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


def sequential(**layers: nn.Module) -> nn.Sequential:
    """Layers one after the other, under these names in state dicts."""
    return nn.Sequential(OrderedDict(layers))


def cifar_network(head: nn.Linear, **layers: nn.Module) -> nn.Sequential:
    """``layers`` between the normalisation for CIFAR and the average that ``head`` reads; see :func:`he_normal`."""
    ends = {"average": nn.AdaptiveAvgPool2d(1), "flatten": nn.Flatten(), "head": head}
    return he_normal(sequential(normalise=Normalise(CIFAR_MEAN, CIFAR_STD), **layers, **ends))


def stages(
    block: Callable[[int, int, int], nn.Module], inputs: int, outputs: Sequence[int], counts: Sequence[int]
) -> Iterator[nn.Sequential]:
    """Stages of blocks (input channels, output channels, stride); each stage but the first has stride 2."""
    for k, (channels, count) in enumerate(zip(outputs, counts, strict=True)):
        first = block(inputs, channels, 2 if k else 1)
        yield nn.Sequential(first, *(block(channels, channels, 1) for _ in range(count - 1)))
        inputs = channels


def zero_bias_head(inputs: int, num_classes: int) -> nn.Linear:
    head = nn.Linear(inputs, num_classes)
    nn.init.zeros_(head.bias)
    return head


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
    parts: dict[str, nn.Module] = {
        "normalise": Normalise(IMAGENET_MEAN, IMAGENET_STD),
        "conv1": nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False),
        "bn1": nn.BatchNorm2d(64),
        "relu": nn.ReLU(),
        "maxpool": nn.MaxPool2d(3, stride=2, padding=1),
    }
    outputs = [64 * 2**k * block.expansion for k in range(4)]
    made = stages(lambda i, o, stride: block(i, o // block.expansion, stride), 64, outputs, depths)
    parts |= {f"layer{k}": layer for k, layer in enumerate(made, 1)}
    head = nn.Linear(outputs[-1], num_classes)
    return he_normal(sequential(**parts, avgpool=nn.AdaptiveAvgPool2d(1), flatten=nn.Flatten(), fc=head))


def resnext(num_classes: int = 10, *, cardinality: int = 32, base_width: int = 4) -> nn.Sequential:
    """ResNeXt-29 of Xie et al., 2017, form C: ``cardinality`` groups of ``base_width`` channels at first.

    The paper's is 32x4. z is the 1,024 averaged features.

    >>> sum(weight.numel() for weight in resnext().parameters())
    4775754
    """

    def block(inputs: int, outputs: int, stride: int) -> nn.Module:
        width = outputs // 256 * cardinality * base_width
        return Bottleneck(inputs, width, stride, outputs, groups=cardinality, shortcut="shortcut")

    body = nn.Sequential(*stages(block, 64, (256, 512, 1024), (3, 3, 3)))
    _begin_small(body)
    head = zero_bias_head(1024, num_classes)
    nn.init.kaiming_normal_(head.weight)
    conv = nn.Conv2d(3, 64, 3, padding=1, bias=False)
    return cifar_network(head, conv=conv, bn=nn.BatchNorm2d(64), relu=nn.ReLU(), stages=body)


def _begin_small(stages: nn.Sequential) -> None:
    """Initialise so that Table 3's learning rate of 0.1 is stable from the first step.

    At even odds the head's loss has a curvature of ``|z|^2 / 10`` for ten classes; Nesterov's steps
    with momentum 0.9 grow without bound where 0.1 times it is above 1.36. Summed blocks have
    ``|z|^2`` of about 1,150: the loss leaps to 36 within six steps, and a pass of 40 does not bring
    it back. Residuals that begin at zero (Goyal et al., 2017) have 200; half of that scale, 50.
    """
    blocks = [block for block in stages.modules() if isinstance(block, Bottleneck)]
    for block in blocks:
        nn.init.zeros_(block.bn3.weight)
    last = [block for block in blocks if block._modules["shortcut"]][-1]
    nn.init.constant_(last.get_parameter("shortcut.1.weight"), 0.5)


def resnext29_4x32(num_classes: int = 10) -> nn.Sequential:
    """What the published code trains as ResNeXt-29: 4 groups of 32 channels."""
    return resnext(num_classes, cardinality=4, base_width=32)


class WideBlock(nn.Module):
    """Two 3x3 convolutions, each after its batch norm, next to a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int, dropout: float) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.dropout = nn.Dropout(dropout)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.shortcut = None if inputs == outputs else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        a = relu(self.bn1(x))
        f = self.conv2(self.dropout(relu(self.bn2(self.conv1(a)))))
        # Where the width changes the shortcut starts after the activation, elsewhere before it.
        return f + (x if self.shortcut is None else self.shortcut(a))


def wideresnet(num_classes: int = 10, *, depth: int = 40, widen: int = 2, dropout: float = 0.0) -> nn.Sequential:
    """WideResNet of Zagoruyko & Komodakis, 2016.

    Of ``depth`` layers, ``widen`` times as wide as a ResNet; z is its ``64 * widen`` averages.

    >>> sum(weight.numel() for weight in wideresnet().parameters())
    2243546
    """
    blocks, rest = divmod(depth - 4, 6)
    if blocks < 1 or rest:
        raise MeadaError(f"depth of a WideResNet must be 6n + 4 (10, 16, 22, 28, 34, 40), got {depth}")
    outputs = [16 * widen, 32 * widen, 64 * widen]
    made = stages(lambda i, o, stride: WideBlock(i, o, stride, dropout), 16, outputs, [blocks] * 3)
    body, head = nn.Sequential(*made), zero_bias_head(outputs[-1], num_classes)
    conv = nn.Conv2d(3, 16, 3, padding=1, bias=False)
    return cifar_network(head, conv=conv, stages=body, bn=nn.BatchNorm2d(outputs[-1]), relu=nn.ReLU())


def wideresnet16_1(num_classes: int = 10) -> nn.Sequential:
    """WideResNet-16-1, 175,066 weights for ten classes: trains in minutes on two cores."""
    return wideresnet(num_classes, depth=16, widen=1)
