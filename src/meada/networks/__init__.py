"""Every network by the name that a recipe calls it by; each takes ``num_classes``."""

from collections.abc import Callable

from torch import nn

from meada.networks.lenet import lenet

NETWORKS: dict[str, Callable[..., nn.Module]] = {
    "lenet": lenet,
}
