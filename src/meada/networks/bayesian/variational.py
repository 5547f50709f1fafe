"""Sample the weights of a network from their posterior; variational Linear and Conv2d layers, q = N(mu, s^2).

A variational layer is the layer itself with a mixin added to its class: only ``weight`` and ``bias`` are
read differently, so groups, dilation, padding modes and hooks are as they were."""

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus
from torch.nn.parameter import UninitializedParameter

from meada.errors import MeadaError
from meada.networks.freezing import temporarily
from meada.streams import stream


class Weight(NamedTuple):
    """One sampled tensor, with sigma and epsilon where its density is needed."""

    theta: Tensor
    sigma: Tensor | None = None
    epsilon: Tensor | None = None

    @property
    def log_q(self) -> Tensor:
        """log N(theta; mu, sigma^2), summed."""
        assert self.sigma is not None and self.epsilon is not None
        constant = 0.5 * self.theta.numel() * math.log(2 * math.pi)
        return -self.sigma.log().sum() - 0.5 * self.epsilon.square().sum() - constant


class WeightSample:
    """The sample keyed by ``names``: the same names always give the same sample.

    Each tensor is sampled when it is first asked for, from a stream of its own, and then kept. A
    ``lean`` sample keeps the tensors alone: enough for forward passes, not for densities.
    """

    def __init__(self, *names: int | str, lean: bool = False) -> None:
        self.names, self.lean = names, lean
        self._held: dict[str, Weight] = {}
        self._masks: dict[str, Tensor] = {}

    def weight(self, place: str, mu: Tensor, rho: Tensor) -> Weight:
        r""":math:`\theta = \mu + \sigma \circ \epsilon`, with sigma = log(1 + exp(rho))."""
        if place not in self._held:
            epsilon = torch.randn(mu.shape, generator=self._stream(place, mu), dtype=mu.dtype, device=mu.device)
            sigma = softplus(rho)
            theta = torch.addcmul(mu, sigma, epsilon)
            self._held[place] = Weight(theta) if self.lean else Weight(theta, sigma, epsilon)
        return self._held[place]

    def mask(self, place: str, shape: tuple[int, ...], p: float, like: Tensor) -> Tensor:
        """A dropout mask: 1 / (1 - p) with probability 1 - p, else 0; kept like a weight."""
        if place not in self._masks:
            u = torch.rand(shape, generator=self._stream(place, like), device=like.device)
            self._masks[place] = (u >= p).to(like.dtype) / (1 - p if p < 1 else 1)
        return self._masks[place]

    def _stream(self, place: str, like: Tensor) -> torch.Generator:
        return stream(*self.names, place, device=like.device)


class Stochastic:
    """A module with weights from ``sample``; the posterior mean if it is None."""

    sample: WeightSample | None = None


def add_mixin(mixin: type[Stochastic], module: nn.Module) -> None:
    """Change the module's class to a subclass of ``mixin`` and of its own class.

    The object stays: its place in the network, its hooks, and that it is called twice.
    """
    module.__class__ = _both(mixin, type(module))  # type: ignore[arg-type]


@cache
def _both(mixin: type[Stochastic], own: type[nn.Module]) -> type[nn.Module]:
    return type(f"{mixin.__name__}{own.__name__}", (mixin, own), {})


def using_weights(net: nn.Module, sample: WeightSample) -> AbstractContextManager[None]:
    """Inside, forward passes use the weights of ``sample``."""
    return temporarily([m for m in net.modules() if isinstance(m, Stochastic)], "sample", sample)


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
        return self.weight_mu if self.sample is None else next(self.weights(self.sample)).theta

    @property
    def bias(self) -> Tensor | None:
        if self.sample is None or self.bias_mu is None or self.bias_rho is None:
            return self.bias_mu
        return self.sample.weight(f"{self.place}.bias", self.bias_mu, self.bias_rho).theta

    def weights(self, sample: WeightSample) -> Iterator[Weight]:
        """The layer's weights in ``sample``, even before a forward pass."""
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
        deviation = None if mu is None else nn.Parameter(torch.full_like(mu, rho), requires_grad=mu.requires_grad)
        layer.register_parameter(f"{name}_rho", deviation)
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
                f"layer '{place}' ({type(layer).__name__}) must have its weight as a parameter, got one "
                f"computed from {', '.join(own.keys() - {'bias'}) or 'elsewhere'}: "
                "remove the weight norm, spectral norm or pruning first"
            )
    # Two layers with one weight: two samples would untie them, one posterior would count twice.
    owners: dict[int, str] = {}
    for place, module in net.named_modules():
        for name, weight in module._parameters.items():
            full = f"{place}.{name}".lstrip(".")
            if weight is not None and owners.setdefault(id(weight), full) != full:
                raise MeadaError(
                    f"layers '{owners[id(weight)]}' and '{full}' share one weight tensor: give each its own, "
                    "or call a single module twice"
                )
