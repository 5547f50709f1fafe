"""AlexNet, the PACS network of the paper (Table 2), under torchvision's names."""

from collections import OrderedDict

from torch import nn

from meada.networks.normalise import IMAGENET_MEAN, IMAGENET_STD, Normalise


def alexnet(num_classes: int = 1000) -> nn.Sequential:
    """AlexNet in the one-column form of Krizhevsky, 2014; images from 63x63, as a rule 224x224.

    z is the 4,096 inputs of the last layer, as in the paper's text. The published code measures
    its cost on the 9,216 convolution features instead: that is ``embedding="avgpool"``.

    >>> net = alexnet(num_classes=7)
    >>> list(net.state_dict())[:2], net.classifier[6]
    (['features.0.weight', 'features.0.bias'], Linear(in_features=4096, out_features=7, bias=True))
    """
    return nn.Sequential(
        OrderedDict(
            normalise=Normalise(IMAGENET_MEAN, IMAGENET_STD),
            features=_features(),
            avgpool=nn.AdaptiveAvgPool2d(6),  # changes nothing at 224x224 and 227x227
            flatten=nn.Flatten(),
            classifier=nn.Sequential(
                nn.Dropout(0.5),
                nn.Linear(256 * 6 * 6, 4096),
                nn.ReLU(),
                nn.Dropout(0.5),
                nn.Linear(4096, 4096),
                nn.ReLU(),
                nn.Linear(4096, num_classes),
            ),
        )
    )


def _features() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, 64, 11, stride=4, padding=2),
        nn.ReLU(),  # not in place: a hook on the layer before would see its output change
        nn.MaxPool2d(3, stride=2),
        nn.Conv2d(64, 192, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2),
        nn.Conv2d(192, 384, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(384, 256, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(256, 256, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2),
    )
