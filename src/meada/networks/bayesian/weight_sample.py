"""Sample all weights of a network from their posterior, theta_j ~ q(theta), and use them in forward passes."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

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
    """The sample that goes by ``names``: the same names give the same sample, whatever came before.

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
    """A module whose weights come from ``sample``; without one they are the posterior mean."""

    sample: WeightSample | None = None


def add_mixin(mixin: type[Stochastic], module: nn.Module) -> None:
    """Change the module's class to one that is ``mixin`` first and its own otherwise.

    The object stays: its place in the network, its hooks, and that it is called twice.
    """
    module.__class__ = _both(mixin, type(module))  # type: ignore[arg-type]


@cache
def _both(mixin: type[Stochastic], own: type[nn.Module]) -> type[nn.Module]:
    return type(f"{mixin.__name__}{own.__name__}", (mixin, own), {})


@contextmanager
def using_weights(net: nn.Module, sample: WeightSample) -> Iterator[None]:
    """Every forward pass inside uses the weights of ``sample``."""
    with temporarily([m for m in net.modules() if isinstance(m, Stochastic)], "sample", sample):
        yield
