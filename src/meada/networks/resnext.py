"""ResNeXt-29, the CIFAR network of Table 3 whose 3x3 convolutions work in groups."""

from collections import OrderedDict

from torch import Tensor, nn
from torch.nn.functional import relu

from meada.networks.normalise import CIFAR_MEAN, CIFAR_STD, Normalise
from meada.networks.resnet import he_normal, projection


class GroupedBottleneck(nn.Module):
    """1x1 down, 3x3 in ``cardinality`` groups, 1x1 up, beside a shortcut (form C of the source)."""

    def __init__(self, inputs: int, width: int, outputs: int, stride: int, cardinality: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, groups=cardinality, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.shortcut = projection(inputs, outputs, stride)

    def forward(self, x: Tensor) -> Tensor:
        f = relu(self.bn1(self.conv1(x)))
        f = relu(self.bn2(self.conv2(f)))
        f = self.bn3(self.conv3(f))
        return relu(f + (x if self.shortcut is None else self.shortcut(x)))


def resnext(num_classes: int = 10, *, cardinality: int = 32, base_width: int = 4) -> nn.Sequential:
    """ResNeXt-29 of Xie et al., 2017: ``cardinality`` groups of ``base_width`` channels at first.

    The paper's is 32x4. z is the 1,024 averaged features.

    >>> sum(weight.numel() for weight in resnext().parameters())
    4775754
    """
    stages = nn.Sequential()
    inputs = 64
    for scale, first_stride in ((1, 1), (2, 2), (4, 2)):
        width, outputs = scale * cardinality * base_width, scale * 256
        stage = nn.Sequential()
        for stride in (first_stride, 1, 1):  # three blocks of three layers, in three stages
            stage.append(GroupedBottleneck(inputs, width, outputs, stride, cardinality))
            inputs = outputs
        stages.append(stage)
    _begin_small(stages)
    head = nn.Linear(inputs, num_classes)
    nn.init.kaiming_normal_(head.weight)
    nn.init.zeros_(head.bias)
    return he_normal(
        nn.Sequential(
            OrderedDict(
                normalise=Normalise(CIFAR_MEAN, CIFAR_STD),
                conv=nn.Conv2d(3, 64, 3, padding=1, bias=False),
                bn=nn.BatchNorm2d(64),
                relu=nn.ReLU(),
                stages=stages,
                average=nn.AdaptiveAvgPool2d(1),
                flatten=nn.Flatten(),
                head=head,
            )
        )
    )


def _begin_small(stages: nn.Sequential) -> None:
    """Features with which Table 3's learning rate of 0.1 holds from the first step.

    At even odds the head's loss has a curvature of ``|z|^2 / 10`` for ten classes; Nesterov's steps
    with momentum 0.9 grow without bound where 0.1 times it is above 1.36. Summed blocks have
    ``|z|^2`` of about 1,150: the loss leaps to 36 within six steps, and a pass of 40 does not bring
    it back. Residuals that begin at zero (Goyal et al., 2017) have 200; half of that scale, 50.
    """
    blocks = [block for block in stages.modules() if isinstance(block, GroupedBottleneck)]
    for block in blocks:
        nn.init.zeros_(block.bn3.weight)
    last = [block.shortcut for block in blocks if block.shortcut is not None][-1]
    nn.init.constant_(last.get_parameter("1.weight"), 0.5)


def resnext29_4x32(num_classes: int = 10) -> nn.Sequential:
    """What the published code trains as ResNeXt-29: 4 groups of 32 channels."""
    return resnext(num_classes, cardinality=4, base_width=32)
