"""Warn of weights that fit a network by names and shapes but were trained in another architecture."""

import re
from pathlib import Path

from safetensors import safe_open
from torch import nn

# Bottlenecks of the first ResNet stride in their 1x1 convolution; "v1.5" (torchvision, "v1b" to "v1s") in the 3x3.
FIRST_FORM = re.compile(r"caffe|msra|detectron|stride_in_1x1|v1(?![._-]?5(?!\d)|[b-z\d])", re.IGNORECASE)
LATER_FORM = re.compile(r"torchvision|v1[._-]?5(?!\d)|v1[b-s]\b|resnet\d+-[0-9a-f]{8}\b", re.IGNORECASE)


def variant_warning(net: nn.Module, path: Path) -> str:
    """A sentence where the file's name or metadata say another form of ResNet than ``net`` is; else nothing."""
    own = bottleneck_form(net)
    told = stated_form(f"{path.name} {_metadata(path)}")
    if not own or not told or own == told:
        return ""
    where = {"v1": "the 1x1 convolution strides (ResNet v1)", "v1.5": "the 3x3 convolution strides (ResNet v1.5)"}
    return (
        f"{path} fits by names and shapes, but says that {where[told]}, while in this {type(net).__name__} "
        f"{where[own]}: its features will be wrong"
    )


def bottleneck_form(net: nn.Module) -> str:
    """``v1`` or ``v1.5`` by which convolution of the bottlenecks strides; empty where there are none."""
    for block in net.modules():
        first, second = (getattr(block, name, None) for name in ("conv1", "conv2"))
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


def _metadata(path: Path) -> str:
    if path.suffix != ".safetensors":
        return ""
    with safe_open(path, framework="pt") as file:
        return " ".join(str(value)[:200] for value in (file.metadata() or {}).values())
