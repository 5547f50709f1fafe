"""The variational twin of a Linear or a Conv2d: its weight and bias are drawn from q = N(mu, s^2).

A twin is the layer itself with another class put before its own: only ``weight`` and ``bias`` are
read differently, so groups, dilation, padding modes and hooks are as they were.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from meada.errors import MeadaError
from meada.networks.bayesian.weight_sample import Draw, Random, Weight, put_before

LAYERS = (nn.Linear, nn.Conv2d)


class Variational(Random):
    """Put before a layer's class: ``weight`` and ``bias`` are those of the draw that is held."""

    place: str  # the layer's name in the network; its stream of random numbers goes by it
    weight_mu: nn.Parameter
    weight_rho: nn.Parameter
    bias_mu: nn.Parameter | None
    bias_rho: nn.Parameter | None

    @property
    def weight(self) -> Tensor:
        if self.draw is None:
            return self.weight_mu
        return self.draw.weight(f"{self.place}.weight", self.weight_mu, self.weight_rho).theta

    @property
    def bias(self) -> Tensor | None:
        if self.draw is None or self.bias_mu is None or self.bias_rho is None:
            return self.bias_mu
        return self.draw.weight(f"{self.place}.bias", self.bias_mu, self.bias_rho).theta

    def weights(self, draw: Draw) -> Iterator[Weight]:
        """What ``draw`` gives this layer, reached by a forward pass or not."""
        yield draw.weight(f"{self.place}.weight", self.weight_mu, self.weight_rho)
        if self.bias_mu is not None and self.bias_rho is not None:
            yield draw.weight(f"{self.place}.bias", self.bias_mu, self.bias_rho)


def make_variational(layer: nn.Module, place: str, rho: float) -> None:
    """Turn the layer into its twin, in place: mu is its weight, sigma is softplus(rho)."""
    own = dict(layer._parameters)
    layer._parameters.clear()
    put_before(Variational, layer)
    for name, mu in own.items():
        layer.register_parameter(f"{name}_mu", mu)
        layer.register_parameter(f"{name}_rho", None if mu is None else _rho(mu, rho))
    layer.place = place  # type: ignore[assignment]


def refuse(net: nn.Module) -> None:
    """Networks that have no twin, each with its reason."""
    layers = {name: m for name, m in net.named_modules() if isinstance(m, LAYERS)}
    if not layers:
        raise MeadaError(f"{type(net).__name__} has no Linear and no Conv2d to make Bayesian")
    for place, layer in layers.items():
        own = layer._parameters
        if isinstance(own.get("weight"), UninitializedParameter):
            raise MeadaError(f"layer '{place}' has no weights yet: pass a batch through it first")
        if own.get("weight") is None or own.keys() - {"weight", "bias"}:
            raise MeadaError(
                f"layer '{place}' ({type(layer).__name__}) does not own its weight but computes "
                f"it from {', '.join(own.keys() - {'bias'}) or 'elsewhere'}: a posterior needs "
                "the weight itself; remove the weight norm, spectral norm or pruning first"
            )
    _refuse_shared(net)


def _refuse_shared(net: nn.Module) -> None:
    """Two layers with one weight: two draws would untie them, one posterior would count twice."""
    owners: dict[int, str] = {}
    for place, module in net.named_modules():
        for name, weight in module._parameters.items():
            full = f"{place}.{name}".lstrip(".")
            if weight is not None and owners.setdefault(id(weight), full) != full:
                raise MeadaError(
                    f"'{owners[id(weight)]}' and '{full}' are one and the same weight: a posterior "
                    "needs them apart, or one module that is called twice"
                )


def _rho(mu: nn.Parameter, rho: float) -> nn.Parameter:
    return nn.Parameter(torch.full_like(mu, rho), requires_grad=mu.requires_grad)
