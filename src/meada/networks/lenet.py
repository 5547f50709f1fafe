"""LeNet of the digits experiments: two convolutions, two hidden layers, a read-out."""

from torch import nn

CHANNELS, IMAGE = 3, 32


def lenet(num_classes: int = 10) -> nn.Module:
    """Conv 5x5 64, pool, conv 5x5 128, pool, fc 1024, fc 1024 (z), fc 10; pixels as they are.

    >>> sum(p.numel() for p in lenet().parameters())
    4547466
    """
    return nn.Sequential(
        nn.Conv2d(CHANNELS, 64, 5),
        nn.MaxPool2d(2),  # before the ReLU: the same values and gradients, a quarter of the work
        nn.ReLU(),
        nn.Conv2d(64, 128, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(128 * 5 * 5, 1024),
        nn.ReLU(),
        nn.Linear(1024, 1024),
        nn.ReLU(),
        nn.Linear(1024, num_classes),
    )
