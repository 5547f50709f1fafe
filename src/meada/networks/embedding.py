"""A classifier is an embedding followed by a read-out: where z lies in any network."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from meada.errors import MeadaError, nearest
from meada.networks.freezing import at_rest
from meada.types import Embedding, Images, Logits

Forward = Callable[[Images], tuple[Logits, Embedding]]


def bare(net: nn.Module) -> nn.Module:
    """The network inside a compiled or distributed wrapper: hooks and input gradients need it.

    A compiled module ignores hooks that came after it was compiled, and
    ``DistributedDataParallel`` does not support ``autograd.grad`` on inputs.
    """
    wrappers = (nn.DataParallel, nn.parallel.DistributedDataParallel)
    while isinstance(net, wrappers) or hasattr(net, "_orig_mod"):
        net = net.module if isinstance(net, wrappers) else net._orig_mod  # type: ignore[assignment]
    return net


@contextmanager
def watching(net: nn.Module, embedding: str | None = None) -> Iterator[Forward]:
    """Forward passes that give ``(logits, z)`` of any network.

    ``embedding`` names a submodule: z is the output of its last call. Without a name, z is the
    input of the last ``nn.Linear`` that the forward pass reaches. Flattened to (B, D) either way.

    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(12, 7), nn.ReLU(), nn.Linear(7, 5))
    >>> with watching(net) as forward:
    ...     logits, z = forward(torch.rand(2, 3, 2, 2))
    >>> logits.shape, z.shape
    (torch.Size([2, 5]), torch.Size([2, 7]))
    """
    seen: dict[str, Any] = {}
    hooks = _hook(net, embedding, seen)

    def forward(x: Images) -> tuple[Logits, Embedding]:
        seen.clear()
        logits = logits_of(net(x), len(x))
        return logits, _flat(seen, len(x), embedding)

    try:
        yield forward
    finally:
        for hook in hooks:
            hook.remove()


def embedding_width(net: nn.Module, x: Images, embedding: str | None = None) -> int:
    """D: how many coordinates z has."""
    with torch.no_grad(), watching(net, embedding) as forward:
        return forward(x)[1].shape[1]


def check_fits(net: nn.Module, x: Images, labels: Tensor) -> None:
    """Refuse images and labels that the network cannot take, before any work is done."""
    try:
        with at_rest(net), torch.no_grad():
            classes = logits_of(net(x), len(x)).shape[1]
    except MeadaError:
        raise
    except (RuntimeError, ValueError) as error:
        what = str(error).splitlines()[0]
        raise MeadaError(f"{type(net).__name__} does not take images of shape {tuple(x.shape[1:])}: {what}") from None
    if not 0 <= int(labels.min()) <= int(labels.max()) < classes:
        raise MeadaError(
            f"labels from {int(labels.min())} to {int(labels.max())}: the network knows the classes 0 to {classes - 1}"
        )


def _hook(net: nn.Module, embedding: str | None, seen: dict[str, Any]) -> list[Any]:
    def keep_input(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        seen["z"] = args[0] if args else kwargs.get("input")

    def keep_output(_: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        seen["z"] = output

    if embedding is not None:
        return [_named(net, embedding).register_forward_hook(keep_output)]
    readouts = [m for m in net.modules() if isinstance(m, nn.Linear)]
    return [m.register_forward_pre_hook(keep_input, with_kwargs=True) for m in readouts]


def _named(net: nn.Module, embedding: str) -> nn.Module:
    modules = dict(net.named_modules())
    if embedding not in modules:
        raise MeadaError(
            f"embedding '{embedding}' is no submodule of {type(net).__name__}: "
            + nearest(embedding, filter(None, modules))
        )
    return modules[embedding]


def logits_of(output: Any, n: int) -> Logits:
    if not isinstance(output, Tensor) or output.ndim != 2 or len(output) != n:
        shape = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
        raise MeadaError(f"the network gave {shape} for {n} images: logits of shape ({n}, classes) are needed")
    return _single(output)


def _flat(seen: dict[str, Any], n: int, embedding: str | None) -> Embedding:
    where = f"embedding '{embedding}'" if embedding else "the last nn.Linear"
    if "z" not in seen:
        raise MeadaError(
            f"the forward pass does not reach {where}"
            if embedding
            else "the forward pass reaches no nn.Linear, so the transport cost has no place: "
            "name the submodule whose output is the embedding (embedding='...')"
        )
    z = seen["z"]
    if not isinstance(z, Tensor) or z.ndim == 0 or len(z) != n:
        shape = tuple(z.shape) if isinstance(z, Tensor) else type(z).__name__
        raise MeadaError(f"{where} gives {shape} for {n} images: one row an image is needed")
    return _single(z.flatten(1) if z.ndim > 1 else z[:, None])


def _single(values: Tensor) -> Tensor:
    """Half precision is for the network alone: objective and update are at least fp32."""
    return values.float() if values.dtype in (torch.bfloat16, torch.float16) else values
