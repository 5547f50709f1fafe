"""Convert the published code's settings (batch means, normalised space) to values per sample in pixels.

The published code averages its losses over a batch of B, its cost over the D coordinates of z, and
climbs (x - mean) / sigma. A step of lr_max there is, in pixels and per sample,
``eta = lr_max / B * sigma**2`` (sigma once for the gradient and once for the way back), and its
gamma is ``gamma / D`` here. Beta is the same in both. (Its ``eta`` is the paper's beta.)

``pixels`` is neither's: a step goes along the gradient by ``step_size`` in the root mean square of
the pixels, for a network of any scale and a sample of any confidence; gamma as in ``official``.
"""

from typing import Literal

import torch
from torch import Tensor, nn

from meada.errors import MeadaError
from meada.networks.embedding import embedding_width
from meada.networks.freezing import frozen
from meada.networks.normalise import Normalise
from meada.types import Images

Units = Literal["sample", "official", "pixels"]


def per_sample(
    units: Units, net: nn.Module, x: Images, *, step_size: float, gamma: float, batch: int, embedding: str | None = None
) -> tuple[float | Tensor, float]:
    """``(step_size, gamma)`` as :func:`meada.perturb` takes them.

    >>> from meada.networks.plain import lenet
    >>> x = torch.rand(1, 3, 32, 32)
    >>> eta, gamma = per_sample("official", lenet(), x, step_size=1.0, gamma=1.0, batch=32)
    >>> float(eta) * 32, gamma * 1024
    (1.0, 1.0)
    """
    if units == "sample":
        return step_size, gamma
    if units not in ("official", "pixels"):
        raise MeadaError(f"units must be 'sample', 'official' or 'pixels', got '{units}'")
    with frozen(net):
        width = embedding_width(net, x[:1], embedding)
    if units == "pixels":
        return step_size, gamma / width
    return step_size / batch * sigma(net) ** 2, gamma / width


def sigma(net: nn.Module) -> Tensor:
    """Standard deviation per channel of the network's normalisation layer; 1 without such a layer."""
    layers = [module for module in net.modules() if isinstance(module, Normalise)]
    if len(layers) > 1:
        raise MeadaError(f"official units need a network with at most one normalisation layer, got {len(layers)}")
    return layers[0].std.flatten() if layers else torch.ones(1)
