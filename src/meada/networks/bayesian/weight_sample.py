"""theta_j ~ q(theta): one draw of all that is random in a network, held over any forward pass."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from meada.networks.freezing import held_over
from meada.streams import stream


class Weight(NamedTuple):
    """One drawn tensor, and what it was made of where a density will be asked for."""

    theta: Tensor
    sigma: Tensor | None = None
    epsilon: Tensor | None = None

    @property
    def log_q(self) -> Tensor:
        """log N(theta; mu, sigma^2), summed."""
        assert self.sigma is not None and self.epsilon is not None
        constant = 0.5 * self.theta.numel() * math.log(2 * math.pi)
        return -self.sigma.log().sum() - 0.5 * self.epsilon.square().sum() - constant


class Draw:
    """The draw that goes by ``names``: the same names give the same draw, whatever came before.

    Each tensor is drawn when it is first asked for, from a stream of its own, and then kept. A
    ``lean`` draw keeps the drawn tensors alone: enough for forward passes, not for densities.
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
        """A dropout layer's: 1 / (1 - p) with chance 1 - p, else 0; kept like a weight."""
        if place not in self._masks:
            u = torch.rand(shape, generator=self._stream(place, like), device=like.device)
            self._masks[place] = (u >= p).to(like.dtype) / (1 - p if p < 1 else 1)
        return self._masks[place]

    def _stream(self, place: str, like: Tensor) -> torch.Generator:
        return stream(*self.names, place, device=like.device)


class Random:
    """A module that looks at the draw which is held over it; without one it stands at its mean."""

    draw: Draw | None = None


def put_before(mixin: type[Random], module: nn.Module) -> None:
    """Change the module's class to one that is ``mixin`` first and its own otherwise.

    The object stays: its place in the network, its hooks, and that it is called twice.
    """
    module.__class__ = _both(mixin, type(module))  # type: ignore[arg-type]


@cache
def _both(mixin: type[Random], own: type[nn.Module]) -> type[nn.Module]:
    return type(f"{mixin.__name__}{own.__name__}", (mixin, own), {})


@contextmanager
def holding(net: nn.Module, draw: Draw) -> Iterator[None]:
    """Every forward pass inside is that of the one network which ``draw`` stands for."""
    with held_over([m for m in net.modules() if isinstance(m, Random)], "draw", draw):
        yield
