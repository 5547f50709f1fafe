"""Networks by the names that recipes use; each factory takes ``num_classes``."""

from collections.abc import Callable

from torch import nn

from meada.networks.bayesian import to_bayesian
from meada.networks.densenet import densenet, densenet40
from meada.networks.efficientnet_lite import efficientnet_lite0, efficientnet_lite1, efficientnet_lite2
from meada.networks.plain import alexnet, allconv, lenet
from meada.networks.resnet import resnet18, resnet50, resnext, resnext29_4x32, wideresnet, wideresnet16_1

__all__ = ["NETWORKS", "to_bayesian"]

NETWORKS: dict[str, Callable[..., nn.Module]] = {
    "lenet": lenet,
    # for images of 32x32 (CIFAR)
    "allconv": allconv, "densenet": densenet, "densenet40": densenet40, "wideresnet": wideresnet,
    "wideresnet16_1": wideresnet16_1, "resnext": resnext, "resnext29_4x32": resnext29_4x32,
    # for photographs
    "alexnet": alexnet, "resnet18": resnet18, "resnet50": resnet50, "efficientnet_lite0": efficientnet_lite0,
    "efficientnet_lite1": efficientnet_lite1, "efficientnet_lite2": efficientnet_lite2,
}  # fmt: skip
