"""Find the embedding z and the head (the last nn.Linear) in any classifier."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from meada.errors import MeadaError
from meada.images.inputs import check_classes, refuse_script
from meada.networks.freezing import frozen, submodule
from meada.types import Embedding, Images, Logits

Forward = Callable[[Images], tuple[Logits, Embedding]]


def unwrap(net: nn.Module) -> nn.Module:
    """The network inside a compiled or distributed wrapper: hooks and input gradients need it.

    A compiled module ignores hooks that came after it was compiled, and
    ``DistributedDataParallel`` does not support ``autograd.grad`` on inputs.
    """
    wrappers = (nn.DataParallel, nn.parallel.DistributedDataParallel)
    while isinstance(net, wrappers) or hasattr(net, "_orig_mod"):
        net = net.module if isinstance(net, wrappers) else net._orig_mod  # type: ignore[assignment]
    return net


@contextmanager
def embedding_passes(net: nn.Module, embedding: str | None = None) -> Iterator[Forward]:
    """A function from images to ``(logits, z)``, for any network that hooks can be put on.

    ``embedding`` names a submodule: z is the output of its last call. Without a name, z is the
    input of the last ``nn.Linear`` that the forward pass reaches. Flattened to (B, D) either way.

    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(12, 7), nn.ReLU(), nn.Linear(7, 5))
    >>> with embedding_passes(net) as forward:
    ...     logits, z = forward(torch.rand(2, 3, 2, 2))
    >>> logits.shape, z.shape
    (torch.Size([2, 5]), torch.Size([2, 7]))
    """
    refuse_script(net)
    if embedding is not None and not isinstance(embedding, str):
        raise MeadaError(f"embedding must be the name of a submodule, got {embedding!r:.80}")
    seen: dict[str, Any] = {}
    passed = False  # what fails after a first pass has another cause than the images

    def forward(x: Images) -> tuple[Logits, Embedding]:
        nonlocal passed
        seen.clear()
        logits = logits_of(net(x), len(x)) if passed else forward_pass(net, x)
        passed = True
        return logits, _flat(seen, len(x), embedding)

    def keep(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any = None) -> None:
        seen["z"] = output if embedding is not None else args[0] if args else kwargs.get("input")

    with ExitStack() as hooks:
        if embedding is not None:
            hooks.enter_context(submodule(net, embedding, "embedding").register_forward_hook(keep, with_kwargs=True))
        for module in net.modules() if embedding is None else ():
            if isinstance(module, nn.Linear):
                hooks.enter_context(module.register_forward_pre_hook(keep, with_kwargs=True))
        yield forward


def embedding_width(net: nn.Module, x: Images, embedding: str | None = None) -> int:
    """D, the number of coordinates of z."""
    with torch.no_grad(), embedding_passes(net, embedding) as forward:
        return forward(x)[1].shape[1]


def check_fits(net: nn.Module, x: Images, labels: Tensor) -> None:
    """Refuse images and labels that the network does not accept, before any work is done."""
    with frozen(net), torch.no_grad():
        classes = forward_pass(net, x).shape[1]
    check_classes(labels, classes)


def forward_pass(net: nn.Module, x: Images) -> Logits:
    """The logits of ``x``; errors of the network name the shape of the images."""
    try:
        return logits_of(net(x), len(x))
    except (MeadaError, torch.OutOfMemoryError):
        raise
    except (RuntimeError, ValueError, TypeError, AssertionError, LookupError, AttributeError) as error:
        what = (str(error).splitlines() or [""])[0]
        if not what or isinstance(error, LookupError):  # whose text is the key alone
            what = f"{type(error).__name__} {what}".strip()
        name, shape = type(net).__name__, tuple(x.shape[1:])
        raise MeadaError(f"{name} does not take images of shape {shape}: {what}{_likely_cause(net, x)}") from error


def _likely_cause(net: nn.Module, x: Images) -> str:
    weight = next((p for p in net.parameters() if p.is_floating_point()), x)
    if weight.dtype != x.dtype:
        return f": the images are {x.dtype} and the weights {weight.dtype}; use net.to({x.dtype})"
    return ": grey images for a network of colour ones? use images.expand(-1, 3, -1, -1)" if x.shape[1] == 1 else ""


def logits_of(output: Any, n: int) -> Logits:
    """The logits in what a network returned for ``n`` images.

    A tensor, an object or a dict with ``logits`` (as Hugging Face's models return), or a tuple whose first item is one.

    >>> logits_of({"logits": torch.zeros(2, 3), "loss": None}, 2).shape
    torch.Size([2, 3])
    """
    found = plain_logits(output)
    if not isinstance(found, Tensor) or found.ndim != 2 or len(found) != n:
        got = f"shape {tuple(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
        raise MeadaError(f"the network's output for {n} images must be logits of shape ({n}, classes), got {got}")
    return _single(found)


def plain_logits(output: Any) -> Any:
    """``output`` itself, or its logits if it is a dict, a dataclass or a tuple."""
    if isinstance(output, Tensor):
        return output
    if isinstance(output, Mapping) and "logits" in output:
        return output["logits"]
    if hasattr(output, "logits"):
        return output.logits
    return output[0] if isinstance(output, tuple | list) and output else output


def plain_output(net: nn.Module) -> RemovableHandle:
    """Inside, ``net(x)`` returns the logits only, without a wrapping dict, dataclass or tuple."""
    return net.register_forward_hook(lambda _net, _args, output: plain_logits(output))


def _flat(seen: dict[str, Any], n: int, embedding: str | None) -> Embedding:
    where = f"embedding '{embedding}'" if embedding else "the last nn.Linear"
    if "z" not in seen:
        raise MeadaError(
            f"the forward pass must reach {where}, but does not"
            if embedding
            else "the forward pass must reach an nn.Linear, whose input is the embedding; it reaches none: "
            "name the submodule whose output is the embedding (embedding='...')"
        )
    z = seen["z"]
    if not isinstance(z, Tensor) or z.ndim == 0 or len(z) != n:
        shape = tuple(z.shape) if isinstance(z, Tensor) else type(z).__name__
        raise MeadaError(f"{where} must give one row per image, got {shape} for {n} images")
    return _single(z.flatten(1) if z.ndim > 1 else z[:, None])


def _single(values: Tensor) -> Tensor:
    """Convert half precision to fp32, in which objective and update are computed."""
    return values.float() if values.dtype in (torch.bfloat16, torch.float16) else values


def head_name(net: nn.Module) -> str:
    """The name of the last ``nn.Linear``.

    >>> head_name(nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)))
    '3'
    """
    names = [name for name, module in net.named_modules() if isinstance(module, nn.Linear)]
    if not names or not names[-1]:
        raise MeadaError(f"the last layer of {type(net).__name__} must be an nn.Linear after other layers, got none")
    return names[-1]


def head_of(net: nn.Module) -> nn.Linear:
    layer = net.get_submodule(head_name(net))
    assert isinstance(layer, nn.Linear)
    return layer


def set_head(net: nn.Module, layer: nn.Module) -> nn.Module:
    """Replace the head by ``layer``; return the same network."""
    owner, _, leaf = head_name(net).rpartition(".")
    setattr(net.get_submodule(owner), leaf, layer)
    return net


def features(net: nn.Module, images: Tensor, *, batch_size: int = 64) -> Embedding:
    """The head's inputs for all images, (N, D), computed in eval mode in batches; bytes or floats in [0, 1].

    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    >>> x = torch.rand(5, 1, 2, 2)
    >>> torch.allclose(head_of(net)(features(net, x)), net(x))
    True
    """
    net = unwrap(net)
    weight = head_of(net).weight
    scale = 255 if images.dtype == torch.uint8 else 1
    with frozen(net), torch.no_grad(), embedding_passes(net) as forward:
        return torch.cat([forward(x.to(weight) / scale)[1].cpu() for x in images.split(batch_size)])
