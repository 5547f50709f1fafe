"""A network as features and read-out, F and C: the last ``nn.Linear`` and all that is before it."""

from copy import deepcopy

import torch
from torch import nn
from torch.func import functional_call

from meada.errors import MeadaError
from meada.networks.freezing import at_rest
from meada.types import Embedding, Images, Logits


def readout_name(net: nn.Module) -> str:
    """
    >>> readout_name(nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)))
    '3'
    """
    names = [name for name, module in net.named_modules() if isinstance(module, nn.Linear)]
    if not names or not names[-1]:
        raise MeadaError(
            f"{type(net).__name__} has no features before a read-out: a network whose last layer "
            "is an nn.Linear is needed"
        )
    return names[-1]


def readout(net: nn.Module) -> nn.Linear:
    """C, the network's own last layer."""
    layer = net.get_submodule(readout_name(net))
    assert isinstance(layer, nn.Linear)
    return layer


def with_readout(net: nn.Module, layer: nn.Module) -> nn.Module:
    """The same network, in place, with ``layer`` where its read-out was."""
    owner, _, leaf = readout_name(net).rpartition(".")
    setattr(net.get_submodule(owner), leaf, layer)
    return net


def features(net: nn.Module) -> nn.Module:
    """F, a copy of all that is before the read-out: images to z.

    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    >>> features(net)(torch.rand(5, 1, 2, 2)).shape
    torch.Size([5, 3])
    """
    return with_readout(deepcopy(net), nn.Identity())


def afresh(layer: nn.Linear) -> nn.Linear:
    """A read-out of the same shape, with random weights of its own."""
    fresh = deepcopy(layer)
    fresh.reset_parameters()
    return fresh


def frozen(layer: nn.Module, z: Embedding) -> Logits:
    """What ``layer`` says, with a gradient for z and none for its weights."""
    weights = {name: weight.detach() for name, weight in layer.named_parameters()}
    out: Logits = functional_call(layer, weights, (z,))
    return out


def check_splits(net: nn.Module, x: Images) -> None:
    """Refuse a network whose logits are not what its last ``nn.Linear`` gives."""
    seen: list[Logits] = []
    hook = readout(net).register_forward_hook(lambda _m, _x, out: seen.append(out))
    try:
        with torch.no_grad(), at_rest(net):
            logits = net(x)
    finally:
        hook.remove()
    if len(seen) != 1 or not torch.equal(seen[0].to(logits), logits):
        raise MeadaError(
            f"{type(net).__name__}'s logits are not what '{readout_name(net)}' gives: a network "
            "whose last layer is its only read-out is needed"
        )
