"""Running means of a network's weights, and points on the line between two sets of weights."""

from collections.abc import Collection, Mapping
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from meada.errors import MeadaError
from meada.networks.freezing import temporarily
from meada.pool import Pool
from meada.streams import stream

State = dict[str, Tensor]


class RunningMean:
    r"""Uniform mean of the weights seen so far, :math:`\bar w_n = \bar w_{n-1} + (w_n - \bar w_{n-1}) / n`.

    Buffers that are floats are averaged too; counters keep their last value. Batch-norm statistics of averaged weights
    are not the average of the statistics: :func:`renew_batch_norm` estimates them again.

    >>> mean = RunningMean()
    >>> for value in (1.0, 2.0, 6.0):
    ...     mean.add({"weight": torch.tensor([value])})
    >>> mean.state["weight"], mean.count
    (tensor([3.]), 3)
    """

    def __init__(self) -> None:
        self.state: State = {}
        self.count = 0

    @torch.no_grad()
    def add(self, state: Mapping[str, Tensor]) -> None:
        self.count += 1
        for name, value in state.items():
            if name in self.state and value.is_floating_point():
                mean = self.state[name] = self.state[name].to(value.device)  # a checkpoint is read to the CPU
                mean += (value - mean) / self.count
            else:
                self.state[name] = value.detach().clone()

    def state_dict(self) -> dict[str, Any]:
        return {"state": self.state, "count": self.count}

    def load_state_dict(self, held: Mapping[str, Any]) -> None:
        self.state, self.count = dict(held["state"]), int(held["count"])


@torch.no_grad()
def interpolate(first: Mapping[str, Tensor], last: Mapping[str, Tensor], t: float, keep: Collection[str] = ()) -> State:
    """(1 - t) ``first`` + t ``last``; names in ``keep``, counters and names not in ``first`` are taken from ``last``.

    With a new head, keep the head: only the backbone has a meaning at both ends (WiSE-FT, arXiv 2109.01903).

    >>> a, b = {"w": torch.zeros(1), "head": torch.zeros(1)}, {"w": torch.ones(1), "head": torch.ones(1)}
    >>> interpolate(a, b, 0.25, keep=["head"])
    {'w': tensor([0.2500]), 'head': tensor([1.])}
    """
    if not 0 <= t <= 1:
        raise MeadaError(f"t must be between 0 and 1, got {t}")
    mixed = lambda name, w: name in first and name not in keep and w.is_floating_point()
    return {n: torch.lerp(first[n], w, t) if mixed(n, w) else w.clone() for n, w in last.items()}


@torch.no_grad()
def renew_batch_norm(net: nn.Module, pool: Pool, *, batch_size: int, seed: int, batches: int = 50) -> None:
    """Estimate batch-norm statistics again, as the mean over some batches of the pool; change nothing else."""
    layers = [layer for layer in net.modules() if isinstance(layer, _BatchNorm) and layer.track_running_stats]
    if not layers:
        return
    order, device = torch.randperm(len(pool), generator=stream(seed, "renew batch norm")), next(net.parameters()).device
    with ExitStack() as stack:
        stack.enter_context(temporarily([*net.modules()], "training", False))
        stack.enter_context(temporarily(layers, "training", True))
        stack.enter_context(temporarily(layers, "momentum", None))  # a plain mean over the batches
        for layer in layers:
            layer.reset_running_stats()
        for index in order.split(batch_size)[:batches]:
            if len(index) > 1 or len(order) == 1:
                net(pool.batch(index).x.to(device))
