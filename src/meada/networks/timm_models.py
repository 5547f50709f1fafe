"""Networks of timm, where it is installed, with normalisation inside: pixels in [0, 1] in."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from torch import nn

from meada.errors import MeadaError, nearest
from meada.networks.normalise import IMAGENET_MEAN, IMAGENET_STD, Normalise


def timm_network(name: str) -> Callable[..., nn.Module]:
    """The function that makes timm's network ``name``, with its normalisation inside."""
    timm = _timm(name)
    known = timm.list_models()
    if name.partition(".")[0] not in known:
        raise MeadaError(f"network 'timm:{name}' is unknown to timm: {nearest(name, known)}")

    def make(num_classes: int = 1000, pretrained: bool = False) -> nn.Module:
        try:
            net: nn.Module = timm.create_model(name, pretrained=pretrained, num_classes=num_classes)
        except (RuntimeError, ValueError, OSError) as error:
            what = " ".join(str(error).split())[:200]
            raise MeadaError(f"network 'timm:{name}' cannot be made: {what}") from error
        about = getattr(net, "pretrained_cfg", None) or {}
        return normalised(net, about.get("mean", IMAGENET_MEAN), about.get("std", IMAGENET_STD))

    return make


def normalised(net: nn.Module, mean: Any, std: Any) -> nn.Module:
    """The same network from pixels; the names of its weights stay as its published files have them.

    So the layer goes in before the first one, by a hook, and not around the network.
    """
    net.add_module("normalise", Normalise(tuple(mean), tuple(std)))
    net.register_forward_pre_hook(_normalise)
    return net


def _normalise(net: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
    return (net.normalise(args[0]), *args[1:])  # type: ignore[operator]


def _timm(name: str) -> Any:
    try:
        return import_module("timm")
    except Exception as error:  # beside a torchvision that does not fit torch, timm ends in a RuntimeError
        what = f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
        raise MeadaError(
            f"network 'timm:{name}' needs timm, which cannot be imported here ({what}): pip install timm"
        ) from None
