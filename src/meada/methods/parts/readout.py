"""Split a network into F, its features, and C, its head, the last ``nn.Linear``."""

from copy import deepcopy

import torch
from torch import nn
from torch.func import functional_call

from meada.errors import MeadaError
from meada.networks.freezing import frozen
from meada.networks.head import head_name, head_of, set_head
from meada.types import Embedding, Images, Logits


def features(net: nn.Module) -> nn.Module:
    """F, a copy of the network without its head: images to z.

    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    >>> features(net)(torch.rand(5, 1, 2, 2)).shape
    torch.Size([5, 3])
    """
    return set_head(deepcopy(net), nn.Identity())


def afresh(layer: nn.Linear) -> nn.Linear:
    """A head of the same shape with new random weights."""
    fresh = deepcopy(layer)
    fresh.reset_parameters()
    return fresh


def with_fixed_weights(layer: nn.Module, z: Embedding) -> Logits:
    """The output of ``layer`` with a gradient for z and none for its weights."""
    weights = {name: weight.detach() for name, weight in layer.named_parameters()}
    out: Logits = functional_call(layer, weights, (z,))
    return out


def check_splits(net: nn.Module, x: Images) -> None:
    """Refuse a network whose logits are not what its last ``nn.Linear`` gives."""
    seen: list[Logits] = []
    hook = head_of(net).register_forward_hook(lambda _m, _x, out: seen.append(out))
    try:
        with torch.no_grad(), frozen(net):
            logits = net(x)
    finally:
        hook.remove()
    if len(seen) != 1 or not torch.equal(seen[0].to(logits), logits):
        raise MeadaError(
            f"the logits of {type(net).__name__} must be the output of its last nn.Linear, "
            f"'{head_name(net)}', called once; got something else"
        )
