"""Variational Linear and Conv2d layers: weight and bias are sampled from q = N(mu, s^2).

A variational layer is the layer itself with a mixin added to its class: only ``weight`` and ``bias`` are
read differently, so groups, dilation, padding modes and hooks are as they were.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from meada.errors import MeadaError
from meada.networks.bayesian.weight_sample import Stochastic, Weight, WeightSample, add_mixin

LAYERS = (nn.Linear, nn.Conv2d)


class Variational(Stochastic):
    """Mixin of a layer: ``weight`` and ``bias`` are those of the sample in use."""

    place: str  # the layer's name in the network; its stream of random numbers goes by it
    weight_mu: nn.Parameter
    weight_rho: nn.Parameter
    bias_mu: nn.Parameter | None
    bias_rho: nn.Parameter | None

    @property
    def weight(self) -> Tensor:
        if self.sample is None:
            return self.weight_mu
        return self.sample.weight(f"{self.place}.weight", self.weight_mu, self.weight_rho).theta

    @property
    def bias(self) -> Tensor | None:
        if self.sample is None or self.bias_mu is None or self.bias_rho is None:
            return self.bias_mu
        return self.sample.weight(f"{self.place}.bias", self.bias_mu, self.bias_rho).theta

    def weights(self, sample: WeightSample) -> Iterator[Weight]:
        """The layer's weights in ``sample``, reached by a forward pass or not."""
        yield sample.weight(f"{self.place}.weight", self.weight_mu, self.weight_rho)
        if self.bias_mu is not None and self.bias_rho is not None:
            yield sample.weight(f"{self.place}.bias", self.bias_mu, self.bias_rho)


def make_variational(layer: nn.Module, place: str, rho: float) -> None:
    """Make the layer variational, in place: mu is its weight, sigma is softplus(rho)."""
    own = dict(layer._parameters)
    layer._parameters.clear()
    add_mixin(Variational, layer)
    for name, mu in own.items():
        layer.register_parameter(f"{name}_mu", mu)
        layer.register_parameter(f"{name}_rho", None if mu is None else _rho(mu, rho))
    layer.place = place  # type: ignore[assignment]


def refuse(net: nn.Module) -> None:
    """Refuse networks that cannot be made Bayesian, with the reason."""
    layers = {name: m for name, m in net.named_modules() if isinstance(m, LAYERS)}
    if not layers:
        raise MeadaError(
            f"a network to make Bayesian must have an nn.Linear or nn.Conv2d, got none in {type(net).__name__}"
        )
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
    """Two layers with one weight: two samples would untie them, one posterior would count twice."""
    owners: dict[int, str] = {}
    for place, module in net.named_modules():
        for name, weight in module._parameters.items():
            full = f"{place}.{name}".lstrip(".")
            if weight is not None and owners.setdefault(id(weight), full) != full:
                raise MeadaError(
                    f"layers '{owners[id(weight)]}' and '{full}' share one weight tensor: give each its own, "
                    "or call a single module twice"
                )


def _rho(mu: nn.Parameter, rho: float) -> nn.Parameter:
    return nn.Parameter(torch.full_like(mu, rho), requires_grad=mu.requires_grad)
