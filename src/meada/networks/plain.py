"""Networks without shortcuts: LeNet for digits, AlexNet for PACS (Table 2), AllConvNet for CIFAR (Table 3)."""

import torch
from torch import Tensor, nn

from meada.networks.normalise import IMAGENET_MEAN, IMAGENET_STD, Normalise
from meada.networks.resnet import cifar_network, sequential, zero_bias_head


def lenet(num_classes: int = 10) -> nn.Module:
    """Conv 5x5 64, pool, conv 5x5 128, pool, fc 1024, fc 1024 (z), fc 10; pixels as they are.

    >>> sum(p.numel() for p in lenet().parameters())
    4547466
    """
    return nn.Sequential(
        # Pooled before the ReLU: the same values and gradients, a quarter of the work.
        *(nn.Conv2d(3, 64, 5), nn.MaxPool2d(2), nn.ReLU()),
        *(nn.Conv2d(64, 128, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten()),
        *(nn.Linear(128 * 5 * 5, 1024), nn.ReLU()),
        *(nn.Linear(1024, 1024), nn.ReLU()),
        nn.Linear(1024, num_classes),
    )


def alexnet(num_classes: int = 1000) -> nn.Sequential:
    """AlexNet in the one-column form of Krizhevsky, 2014; images from 63x63, as a rule 224x224.

    z is the 4,096 inputs of the last layer, as in the paper's text. The published code measures
    its cost on the 9,216 convolution features instead: that is ``embedding="avgpool"``.

    >>> net = alexnet(num_classes=7)
    >>> list(net.state_dict())[:2], net.classifier[6]
    (['features.0.weight', 'features.0.bias'], Linear(in_features=4096, out_features=7, bias=True))
    """
    features = nn.Sequential(  # no ReLU in place: a hook on the layer before would see its output change
        *(nn.Conv2d(3, 64, 11, stride=4, padding=2), nn.ReLU(), nn.MaxPool2d(3, stride=2)),
        *(nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, stride=2)),
        *(nn.Conv2d(192, 384, 3, padding=1), nn.ReLU()),
        *(nn.Conv2d(384, 256, 3, padding=1), nn.ReLU()),
        *(nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, stride=2)),
    )
    classifier = nn.Sequential(
        *(nn.Dropout(0.5), nn.Linear(256 * 6 * 6, 4096), nn.ReLU()),
        *(nn.Dropout(0.5), nn.Linear(4096, 4096), nn.ReLU()),
        nn.Linear(4096, num_classes),
    )
    return sequential(
        normalise=Normalise(IMAGENET_MEAN, IMAGENET_STD),
        features=features,
        avgpool=nn.AdaptiveAvgPool2d(6),  # changes nothing at 224x224 and 227x227
        flatten=nn.Flatten(),
        classifier=classifier,
    )


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
        nn.AvgPool2d(8),  # the first 8x8 of the 10x10, as published; larger images are averaged after it
    )
    return cifar_network(zero_bias_head(192, num_classes), features=features)


def _layer(inputs: int, outputs: int, kernel: int = 3, padding: int = 1) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, padding=padding), nn.BatchNorm2d(outputs), QuickGELU())
