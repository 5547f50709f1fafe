"""Run a network with its convolutions channels-last, the layout that a CPU's kernels are fastest with."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

CONVOLUTIONS = (nn.Conv2d, nn.ConvTranspose2d)


@contextmanager
def channels_last(net: nn.Module) -> Iterator[None]:
    """Inside, the convolutions of ``net`` use channels-last copies of their weights.

    Nothing of the network is changed for good: its own parameters, the objects themselves, are back on exit. The
    results are the same up to rounding. Convolutions that are channels-last already, or compute their weights from
    others (weight norm, Bayesian layers), are left as they are; so is a network on a GPU.

    >>> net = nn.Sequential(nn.Conv2d(3, 8, 3))
    >>> own = net[0].weight
    >>> with channels_last(net):
    ...     net(torch.rand(2, 3, 6, 6)).is_contiguous(memory_format=torch.channels_last)
    True
    >>> net[0].weight is own
    True
    """
    swapped = [(module, module._parameters["weight"]) for module in net.modules() if _gains(module)]
    copies = {weight: _copy(weight) for _, weight in swapped if weight is not None}
    try:
        for module, weight in swapped:
            assert weight is not None
            module._parameters["weight"] = copies[weight]
        yield
    finally:
        for module, weight in swapped:
            module._parameters["weight"] = weight


def _gains(module: nn.Module) -> bool:
    weight = module._parameters.get("weight") if isinstance(module, CONVOLUTIONS) else None
    return (
        weight is not None
        and weight.device.type == "cpu"
        and not weight.is_contiguous(memory_format=torch.channels_last)
    )


def _copy(weight: nn.Parameter) -> nn.Parameter:
    copy = weight.detach().clone(memory_format=torch.channels_last)
    return nn.Parameter(copy, requires_grad=weight.requires_grad)
