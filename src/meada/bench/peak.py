"""The machine's own limit: a network's convolutions and matrix products in a bare loop, no more.

Forward and input gradient, which is all that the ascent needs of them; no activation, no batch
norm, no pooling, no loss, no update, and no product waits for another's result.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d

from meada.bench.measure import Spread, interleave, work
from meada.networks.rest import at_rest
from meada.types import Images

LAYOUTS = {"channels first": torch.contiguous_format, "channels last": torch.channels_last}
Product = Callable[[], object]  # one layer's forward product and input gradient
GEMM = 2048


def products(net: nn.Module, x: Images, layout: torch.memory_format) -> list[Product]:
    """Every convolution and linear layer that ``net`` applies to ``x``, ready to be repeated."""
    found: list[Product] = []

    def note(module: nn.Module, args: tuple[Any, ...], output: Tensor) -> None:
        given = torch.rand_like(args[0])
        back = torch.rand_like(output)
        if isinstance(module, nn.Conv2d):
            found.append(_convolution(module, given, back, layout))
        else:
            weight = module.weight.detach().clone()
            found.append(lambda: (given @ weight.T, back @ weight))

    with at_rest(net), torch.no_grad(), _hooked(net, note):
        net(x)
    return found


def run(these: list[Product]) -> None:
    with torch.inference_mode():
        for product in these:
            product()


def fastest(net: nn.Module, x: Images, rounds: int = 2) -> tuple[str, list[Product]]:
    """The layout in which the products of this batch take the least time, and the products."""
    tried = {name: products(net, x, layout) for name, layout in LAYOUTS.items()}
    times = interleave({name: work(run, these) for name, these in tried.items()}, rounds + 1)
    best = min(tried, key=lambda name: min(times[name][1:]))  # the first round warms up
    return best, tried[best]


def operations(net: nn.Module, x: Images) -> float:
    """Floating-point operations of one image's products, forward and input gradient.

    >>> from meada.networks.lenet import lenet
    >>> net, x = lenet(), torch.rand(1, 3, 32, 32)
    >>> convolutions = 28**2 * 64 * 75 + 10**2 * 128 * 1600
    >>> operations(net, x) == 4 * (convolutions + 3200 * 1024 + 1024 * 1024 + 1024 * 10)
    True
    """
    counts: list[int] = []

    def note(module: nn.Module, args: tuple[Any, ...], output: Tensor) -> None:
        places = output[0].numel() // module.weight.shape[0]
        counts.append(module.weight.numel() * places)

    with at_rest(net), torch.no_grad(), _hooked(net, note):
        net(x[:1])
    return 4.0 * sum(counts)  # a multiplication and an addition, there and back


def gemm_rate(rounds: int, n: int = GEMM) -> Spread:
    """GFLOP/s of a plain product of two n x n matrices."""
    a, b = torch.rand(n, n), torch.rand(n, n)
    times = interleave({"gemm": work(torch.mm, a, b)}, rounds + 1)["gemm"][1:]
    return Spread.of([2e-9 * n**3 / t for t in times])


def _convolution(module: nn.Conv2d, x: Tensor, back: Tensor, layout: torch.memory_format) -> Product:
    x, back = (t.contiguous(memory_format=layout) for t in (x, back))
    weight = module.weight.detach().clone().contiguous(memory_format=layout)
    padding = list(module.padding)  # type: ignore[arg-type]
    how = (list(module.stride), padding, list(module.dilation))

    def product() -> object:
        there = conv2d(x, weight, None, *how, module.groups)
        return there, torch.ops.aten.convolution_backward(
            back, x, weight, None, *how, False, [0, 0], module.groups, (True, False, False)
        )

    return product


class _hooked:
    """``note`` is told of every convolution and linear layer that a forward pass reaches."""

    def __init__(self, net: nn.Module, note: Callable[..., None]) -> None:
        self.net, self.note = net, note

    def __enter__(self) -> None:
        layers = [m for m in self.net.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
        self.hooks = [layer.register_forward_hook(self.note) for layer in layers]

    def __exit__(self, *_: object) -> None:
        for hook in self.hooks:
            hook.remove()
