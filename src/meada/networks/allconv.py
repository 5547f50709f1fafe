"""AllConvNet, the CIFAR network of Table 3 that has neither shortcuts nor hidden linear layers."""

from collections import OrderedDict

import torch
from torch import Tensor, nn

from meada.networks.normalise import CIFAR_MEAN, CIFAR_STD, Normalise
from meada.networks.resnet import he_normal


class QuickGELU(nn.Module):
    r"""The logistic form of the Gaussian error linear unit, :math:`x\,\sigma(1.702\,x)`.

    >>> round(QuickGELU()(torch.ones(1)).item(), 4)  # 1 / (1 + exp(-1.702))
    0.8458
    """

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(1.702 * x)


def allconv(num_classes: int = 10) -> nn.Sequential:
    """AllConvNet of Salimans & Kingma, 2016, in the form of the corruption benchmarks.

    For images of 32x32 (at least 24x24); z is the 192 averaged features.

    >>> sum(weight.numel() for weight in allconv().parameters())
    1409674
    """
    features = nn.Sequential(
        *(_layer(3, 96), _layer(96, 96), _layer(96, 96), nn.MaxPool2d(2), nn.Dropout(0.5)),
        *(_layer(96, 192), _layer(192, 192), _layer(192, 192), nn.MaxPool2d(2), nn.Dropout(0.5)),
        _layer(192, 192, padding=0),  # 8x8 to 6x6
        # A padded 1x1 convolution rings the map with what its bias alone gives: 8x8, then 10x10.
        _layer(192, 192, kernel=1),
        _layer(192, 192, kernel=1),
        nn.AvgPool2d(8),  # the first 8x8 of the 10x10, as published
    )
    head = nn.Linear(192, num_classes)
    nn.init.zeros_(head.bias)
    return he_normal(
        nn.Sequential(
            OrderedDict(
                normalise=Normalise(CIFAR_MEAN, CIFAR_STD),
                features=features,
                average=nn.AdaptiveAvgPool2d(1),  # of larger images; nothing is left to do at 32x32
                flatten=nn.Flatten(),
                head=head,
            )
        )
    )


def _layer(inputs: int, outputs: int, kernel: int = 3, padding: int = 1) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, padding=padding), nn.BatchNorm2d(outputs), QuickGELU())
