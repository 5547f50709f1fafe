"""A network at rest: looked at, climbed on, and left exactly as it was found."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from meada.errors import MeadaError, nearest

Slot = tuple[nn.Module, str, Tensor, Tensor]  # owner, name, the buffer itself, its value


@contextmanager
def at_rest(net: nn.Module, stochastic: Collection[str] = ()) -> Iterator[None]:
    """Eval mode, weights frozen; afterwards mode, buffers and ``requires_grad`` are as before.

    Also after an exception or an interrupt. Submodules named in ``stochastic`` (MC-dropout, say)
    stay in training mode.
    """
    noisy = [_named(net, name) for name in stochastic]
    modes = [(module, module.training) for module in net.modules()]
    wanted = [(weight, weight.requires_grad) for weight in net.parameters()]
    buffers = [
        (owner, name, buffer, buffer.clone())
        for owner in net.modules()
        for name, buffer in owner._buffers.items()
        if buffer is not None
    ]
    try:
        net.eval()
        for module in noisy:
            module.train()
        for weight, _ in wanted:
            weight.requires_grad_(False)
        yield
    finally:
        for module, mode in modes:
            module.training = mode
        for weight, wants in wanted:
            weight.requires_grad_(wants)
        _restore(buffers)


@contextmanager
def held_over(modules: Sequence[nn.Module], name: str, value: object) -> Iterator[None]:
    """Every module's attribute ``name`` is ``value`` inside, and what it was afterwards."""
    before = [getattr(module, name) for module in modules]
    try:
        for module in modules:
            setattr(module, name, value)
        yield
    finally:
        for module, old in zip(modules, before, strict=True):
            setattr(module, name, old)


@torch.no_grad()
def _restore(buffers: list[Slot]) -> None:
    """Put back both the buffer and its value: a forward pass may replace or overwrite it."""
    for owner, name, buffer, value in buffers:
        owner._buffers[name] = buffer
        if not torch.equal(buffer, value):
            buffer.copy_(value)


def _named(net: nn.Module, name: str) -> nn.Module:
    modules = dict(net.named_modules())
    if name not in modules:
        raise MeadaError(
            f"stochastic layer '{name}' is no submodule of {type(net).__name__}: "
            + nearest(name, filter(None, modules))
        )
    return modules[name]
