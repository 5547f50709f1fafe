"""Peak speed of the machine: only a network's convolutions and matrix products, in a plain loop.

Forward and input gradient, which is all that the ascent needs of them; no activation, no batch
norm, no pooling, no loss, no update, and no product waits for another's result.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d

from benchmarks.measure import Spread, interleave, work
from meada.networks.freezing import frozen
from meada.types import Images

LAYOUTS = {"channels first": torch.contiguous_format, "channels last": torch.channels_last}
Layer = nn.Conv2d | nn.Linear
Product = Callable[[], object]  # one layer's forward product and input gradient
GEMM = 2048


def products(net: nn.Module, x: Images, layout: torch.memory_format) -> list[Product]:
    """The convolutions and linear layers that ``net`` applies to ``x``, as repeatable calls."""
    found: list[Product] = []

    def note(layer: Layer, args: tuple[Tensor, ...], output: Tensor) -> None:
        given, back = torch.rand_like(args[0]), torch.rand_like(output)
        if isinstance(layer, nn.Conv2d):
            found.append(_convolution(layer, given, back, layout))
        else:
            weight = layer.weight.detach().clone()
            found.append(lambda: (given @ weight.T, back @ weight))

    with frozen(net), torch.no_grad(), _hooked(net, note):
        net(x)
    return found


def run(these: list[Product]) -> None:
    with torch.inference_mode():
        for product in these:
            product()


def fastest(net: nn.Module, x: Images, rounds: int = 2) -> tuple[str, list[Product]]:
    """The fastest memory layout for this batch, and the products in it."""
    tried = {name: products(net, x, layout) for name, layout in LAYOUTS.items()}
    times = interleave({name: work(run, these) for name, these in tried.items()}, rounds + 1)
    best = min(tried, key=lambda name: min(times[name][1:]))  # the first round warms up
    return best, tried[best]


def operations(net: nn.Module, x: Images) -> float:
    """Floating-point operations of one image's products, forward and input gradient.

    >>> from meada.networks.plain import lenet
    >>> net, x = lenet(), torch.rand(1, 3, 32, 32)
    >>> convolutions = 28**2 * 64 * 75 + 10**2 * 128 * 1600
    >>> operations(net, x) == 4 * (convolutions + 3200 * 1024 + 1024 * 1024 + 1024 * 10)
    True
    """
    counts: list[int] = []

    def note(layer: Layer, args: tuple[Tensor, ...], output: Tensor) -> None:
        places = output[0].numel() // layer.weight.shape[0]
        counts.append(layer.weight.numel() * places)

    with frozen(net), torch.no_grad(), _hooked(net, note):
        net(x[:1])
    return 4.0 * sum(counts)  # a multiplication and an addition, there and back


def gemm_rate(rounds: int, n: int = GEMM) -> Spread:
    """GFLOP/s of a plain product of two n x n matrices."""
    a, b = torch.rand(n, n), torch.rand(n, n)
    times = interleave({"gemm": work(torch.mm, a, b)}, rounds + 1)["gemm"][1:]
    return Spread.of([2e-9 * n**3 / t for t in times])


def _convolution(layer: nn.Conv2d, x: Tensor, back: Tensor, layout: torch.memory_format) -> Product:
    x, back = (t.contiguous(memory_format=layout) for t in (x, back))
    weight = layer.weight.detach().clone().contiguous(memory_format=layout)
    stride, dilation = list(layer.stride), list(layer.dilation)
    padding = [int(p) for p in layer.padding]  # in pixels, as every network here has it

    def product() -> object:
        there = conv2d(x, weight, None, stride, padding, dilation, layer.groups)
        return there, torch.ops.aten.convolution_backward(
            back, x, weight, None, stride, padding, dilation, False, [0, 0], layer.groups,
            (True, False, False),
        )  # fmt: skip

    return product


@contextmanager
def _hooked(net: nn.Module, note: Callable[..., None]) -> Iterator[None]:
    """Call ``note`` with every convolution and linear layer of a forward pass."""
    layers = [m for m in net.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    hooks = [layer.register_forward_hook(note) for layer in layers]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
