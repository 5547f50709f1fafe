"""A network as features and head: the last ``nn.Linear`` and what comes before it."""

import torch
from torch import Tensor, nn

from meada.errors import MeadaError
from meada.networks.embedding import embedding_passes, unwrap
from meada.networks.freezing import frozen
from meada.types import Embedding


def head_name(net: nn.Module) -> str:
    """The name of the last ``nn.Linear``.

    >>> head_name(nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)))
    '3'
    """
    names = [name for name, module in net.named_modules() if isinstance(module, nn.Linear)]
    if not names or not names[-1]:
        raise MeadaError(f"the last layer of {type(net).__name__} must be an nn.Linear after other layers, got none")
    return names[-1]


def head_of(net: nn.Module) -> nn.Linear:
    layer = net.get_submodule(head_name(net))
    assert isinstance(layer, nn.Linear)
    return layer


def set_head(net: nn.Module, layer: nn.Module) -> nn.Module:
    """Put ``layer`` in the place of the head; return the same network."""
    owner, _, leaf = head_name(net).rpartition(".")
    setattr(net.get_submodule(owner), leaf, layer)
    return net


def features(net: nn.Module, images: Tensor, *, batch_size: int = 64) -> Embedding:
    """The head's inputs for all images, (N, D), computed in eval mode in batches; bytes or floats in [0, 1].

    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    >>> x = torch.rand(5, 1, 2, 2)
    >>> torch.allclose(head_of(net)(features(net, x)), net(x))
    True
    """
    net = unwrap(net)
    weight = head_of(net).weight
    scale = 255 if images.dtype == torch.uint8 else 1
    with frozen(net), torch.no_grad(), embedding_passes(net) as forward:
        return torch.cat([forward(x.to(weight) / scale)[1].cpu() for x in images.split(batch_size)])
