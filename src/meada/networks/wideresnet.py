"""WideResNet: 40-2, a CIFAR network of Table 3 and that of Figure 2, and 16-1 for quick runs."""

from collections import OrderedDict

from torch import Tensor, nn
from torch.nn.functional import relu

from meada.errors import MeadaError
from meada.networks.normalise import CIFAR_MEAN, CIFAR_STD, Normalise
from meada.networks.resnet import he_normal


class WideBlock(nn.Module):
    """Two 3x3 convolutions, each after its batch norm, beside a shortcut."""

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
        raise MeadaError(f"a WideResNet has 6n + 4 layers (10, 16, 22, 28, 34, 40), not depth={depth}")
    widths = (16 * widen, 32 * widen, 64 * widen)
    stages = nn.Sequential()
    inputs = 16
    for outputs, first_stride in zip(widths, (1, 2, 2), strict=True):
        stage = nn.Sequential()
        for stride in [first_stride] + [1] * (blocks - 1):
            stage.append(WideBlock(inputs, outputs, stride, dropout))
            inputs = outputs
        stages.append(stage)
    head = nn.Linear(inputs, num_classes)
    nn.init.zeros_(head.bias)
    return he_normal(
        nn.Sequential(
            OrderedDict(
                normalise=Normalise(CIFAR_MEAN, CIFAR_STD),
                conv=nn.Conv2d(3, 16, 3, padding=1, bias=False),
                stages=stages,
                bn=nn.BatchNorm2d(inputs),
                relu=nn.ReLU(),
                average=nn.AdaptiveAvgPool2d(1),
                flatten=nn.Flatten(),
                head=head,
            )
        )
    )


def wideresnet16_1(num_classes: int = 10) -> nn.Sequential:
    """WideResNet-16-1, 175,066 weights for ten classes: what two cores train in minutes."""
    return wideresnet(num_classes, depth=16, widen=1)
