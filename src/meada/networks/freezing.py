"""Change a network for a while and restore it on exit: frozen, batch norm fixed, convolutions channels-last."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from meada.errors import MeadaError, nearest


@contextmanager
def frozen(net: nn.Module, stochastic: Collection[str] = ()) -> Iterator[None]:
    """Eval mode, weights frozen; afterwards mode, buffers and ``requires_grad`` are as before.

    Also after an exception or an interrupt. Submodules named in ``stochastic`` (MC-dropout, say) stay in training mode.
    """
    noisy = [submodule(net, name, "stochastic layer") for name in stochastic]
    mode, modes = net.training, [(module, module.training) for module in net.modules()]
    # Weights made in inference mode take no gradients, and may not be asked for any.
    wanted = [weight for weight in net.parameters() if weight.requires_grad and not weight.is_inference()]
    buffers = [
        (owner, name, buffer, None if buffer is None else buffer.clone())
        for owner in net.modules()
        for name, buffer in owner._buffers.items()
    ]
    try:
        net.eval()
        for module in noisy:
            module.train()
        for weight in wanted:
            weight.requires_grad_(False)
        yield
    finally:
        net.train(mode)  # a network may do more than set the flag: some merge weights in eval mode
        for module, before in modes:
            module.training = before
        for weight in wanted:
            weight.requires_grad_(True)
        with torch.no_grad():  # a forward pass may replace a buffer or overwrite its value
            for owner, name, buffer, value in buffers:
                owner._buffers[name] = buffer
                if buffer is not None and value is not None and not torch.equal(buffer, value):
                    buffer.copy_(value)


@contextmanager
def batch_norm_frozen(net: nn.Module) -> Iterator[None]:
    """Use the running batch-norm statistics during training and do not update them.

    For fine-tuning: statistics of millions of photographs are better than those of a few small
    batches. Weights and biases of the layers still train. Whoever calls ``net.train()`` inside does
    no harm: the layers return to eval mode before every forward pass.

    >>> net = nn.Sequential(nn.BatchNorm2d(3))
    >>> with batch_norm_frozen(net.train()):
    ...     _ = net(torch.rand(2, 3, 4, 4))
    >>> net[0].running_mean, net[0].training
    (tensor([0., 0., 0.]), True)
    """
    modes = [(module, module.training) for module in net.modules() if isinstance(module, _BatchNorm)]

    def to_eval(called: nn.Module, _: object) -> None:  # ``net``, or a copy that was made inside
        for module in called.modules():
            module.training = module.training and not isinstance(module, _BatchNorm)

    try:
        with net.register_forward_pre_hook(to_eval):
            yield
    finally:
        for module, mode in modes:
            module.training = mode


@contextmanager
def temporarily(modules: Sequence[nn.Module], name: str, value: object) -> Iterator[None]:
    """Set the attribute ``name`` of every module to ``value``; restore the old values on exit."""
    before = [getattr(module, name) for module in modules]
    try:
        for module in modules:
            setattr(module, name, value)
        yield
    finally:
        for module, old in zip(modules, before, strict=True):
            setattr(module, name, old)


def submodule(net: nn.Module, name: str, role: str) -> nn.Module:
    """The submodule called ``name``; ``role`` says in the error what it is used for.

    >>> submodule(nn.Sequential(nn.Flatten()), "1", "embedding")
    Traceback (most recent call last):
    meada.errors.MeadaError: embedding '1' must be a submodule of Sequential: known: 0
    """
    modules = dict(net.named_modules())
    if name not in modules:
        raise MeadaError(
            f"{role} '{name}' must be a submodule of {type(net).__name__}: {nearest(name, filter(None, modules))}"
        )
    return modules[name]


@contextmanager
def channels_last(net: nn.Module) -> Iterator[None]:
    """Inside, the convolutions of ``net`` use channels-last copies of their weights.

    Nothing of the network is changed for good: its own parameters, the objects themselves, are back on exit. The
    results are the same up to rounding. Convolutions that are channels-last already, or compute their weights from
    others (weight norm, Bayesian layers), are left as they are; so is a network on a GPU. A network whose first forward
    pass fails with the copies, such as one that calls ``view`` on the output of a convolution, gets its own back.

    >>> net = nn.Sequential(nn.Conv2d(3, 8, 3))
    >>> own = net[0].weight
    >>> with channels_last(net):
    ...     net(torch.rand(2, 3, 6, 6)).is_contiguous(memory_format=torch.channels_last)
    True
    >>> net[0].weight is own
    True
    """
    swapped = [(module, weight) for module in net.modules() if (weight := _weight_to_convert(module)) is not None]
    copies = {
        weight: nn.Parameter(weight.detach().clone(memory_format=torch.channels_last), weight.requires_grad)
        for _, weight in swapped
    }

    def put_back() -> None:
        for module, weight in swapped:
            module._parameters["weight"] = weight

    try:
        for module, weight in swapped:
            module._parameters["weight"] = copies[weight]
        with _first_pass_may_fail(net, put_back) if swapped else nullcontext():
            yield
    finally:
        put_back()


@contextmanager
def _first_pass_may_fail(net: nn.Module, undo: Callable[[], None]) -> Iterator[None]:
    """If the first forward pass inside raises a RuntimeError, call ``undo`` and repeat it."""
    forward, own = net.forward, net.__dict__.get("forward")  # its own where a wrapper has set it on the object

    def as_before() -> None:
        net.__dict__.pop("forward", None)
        if own is not None:
            net.__dict__["forward"] = own

    def first(*args: Any, **kwargs: Any) -> Any:
        as_before()
        try:
            return forward(*args, **kwargs)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError:
            undo()
            return forward(*args, **kwargs)

    net.__dict__["forward"] = first
    try:
        yield
    finally:
        as_before()


def _weight_to_convert(module: nn.Module) -> nn.Parameter | None:
    """The weight of a convolution on a CPU that is not yet channels-last."""
    weight = module._parameters.get("weight") if isinstance(module, nn.Conv2d | nn.ConvTranspose2d) else None
    if weight is None or type(weight) is not nn.Parameter or weight.__dict__:  # a copy would lack what it carries
        return None
    if weight.device.type != "cpu" or weight.is_contiguous(memory_format=torch.channels_last):
        return None
    return weight
