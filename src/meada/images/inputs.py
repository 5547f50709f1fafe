"""Check and convert images and labels; errors name the likely cause."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from meada.errors import MeadaError
from meada.types import Images, Labels

ROUNDING = 1e-3  # floats this far outside [0, 1] are clamped: resizing overshoots by about as much
CHANNELS = (1, 3, 4)  # grey, colour, colour with transparency
ONE_OUTPUT = ": give a network of two classes two outputs"
NORMALISED = 10.0  # images divided by a standard deviation stay below it; 8-bit values do not


def images_and_labels(
    x: Any, y: Any, net: nn.Module | None = None, *, gradients: bool = False
) -> tuple[Images, Labels]:
    """Images as floats in [0, 1] of shape (N, C, H, W) and labels as int64, with the device and dtype of ``net``.

    Takes tensors, arrays or lists; images as floats in [0, 1] or as uint8 from 0 to 255. ``gradients`` asks for a
    network that they can be computed of.

    >>> x, y = images_and_labels(np.full((2, 1, 4, 4), 255, np.uint8), [3, 7])
    >>> x.max(), y
    (tensor(1.), tensor([3, 7]))
    """
    if net is not None:
        check_network(net)
        if gradients:
            check_gradients(net)
    images = as_images(x)
    labels = as_labels(y, len(images))
    scaled = torch.div(images, 255) if images.dtype == torch.uint8 else images
    weights = () if net is None else net.parameters()
    where = next((p for p in weights if p.is_floating_point()), scaled)
    return scaled.to(where), labels.to(where.device)


def as_images(x: Any) -> Tensor:
    """A tensor (N, C, H, W): uint8 as it is, or floats in [0, 1]."""
    images = _tensor(x, "images")
    _check_shape(tuple(images.shape))
    if images.dtype == torch.uint8:
        return images
    if not images.is_floating_point():
        whole = "for values from 0 to 255 use images.to(torch.uint8)"
        hint = "use images.float()" if images.dtype == torch.bool else whole
        raise MeadaError(f"images must be floats in [0, 1] or uint8 from 0 to 255, got {_name(images.dtype)}: {hint}")
    return in_unit_range(images)


def in_unit_range(images: Tensor) -> Tensor:
    """Floats in [0, 1]: a rounding outside is clamped, more is refused with its likely cause.

    >>> in_unit_range(torch.tensor([-0.0005, 0.5, 1.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    if not images.numel():
        return images
    low, high = (float(v) for v in torch.aminmax(images.detach()))
    if low >= 0 and high <= 1:
        return images
    if not np.isfinite([low, high]).all():
        wrong = int((~images.isfinite()).sum())
        raise MeadaError(f"images must be finite, got {wrong} values that are NaN or infinite")
    if low >= -ROUNDING and high <= 1 + ROUNDING:
        return images.clamp(0, 1)
    raise MeadaError(f"images must have values in [0, 1], got values from {low:.4g} to {high:.4g}: {_cause(low, high)}")


def as_labels(y: Any, n: int) -> Labels:
    """One class number per image, as int64, from whole numbers of any width.

    >>> as_labels([1, 0, 2], 3)
    tensor([1, 0, 2])
    """
    if isinstance(text := _first(y), str):
        raise MeadaError(
            "labels must be a tensor, an array or a list of class numbers, not str, "
            f"got the text '{text[:40]}': number the classes"
        )
    labels = _tensor(y, "labels")
    if labels.ndim == 2:
        raise MeadaError(_two_dimensional(labels))
    if labels.ndim != 1:
        raise MeadaError(f"labels must have shape (N,), one class number per image, got {tuple(labels.shape)}")
    if labels.is_floating_point() or labels.is_complex():
        raise MeadaError(
            f"labels must be class numbers (whole numbers), got {_name(labels.dtype)}: "
            "use labels.long() if every value is a whole number"
        )
    if len(labels) != n:
        raise MeadaError(f"there must be one label per image, got {n} images and {len(labels)} labels")
    labels = labels.long()
    if n and int(labels.min()) < 0:
        raise MeadaError(f"labels must be zero or more, got {int(labels.min())}")
    return labels


def check_network(net: Any, *, training: bool = False) -> None:
    """Refuse anything but a module with initialised and, if ``training``, trainable weights."""
    if isinstance(net, type) or not isinstance(net, nn.Module):
        hint = ": call it, to have a network" if callable(net) else ""
        raise MeadaError(f"net must be a torch.nn.Module, got {getattr(net, '__name__', type(net).__name__)}{hint}")
    if any(is_lazy(p) for p in net.parameters()):
        raise MeadaError("net must have initialised weights, got lazy ones: call net(images[:1]) once before")
    if any(p.is_meta for p in net.parameters()):
        raise MeadaError("net must have initialised weights, got some on the meta device, which has no values")
    if training:
        refuse_script(net)
        check_gradients(net)
    if training and not any(p.requires_grad for p in net.parameters()):
        raise MeadaError("net must have weights to train, got none with requires_grad=True")


def refuse_script(net: nn.Module) -> None:
    """Refuse TorchScript, on whose layers no hooks can be put."""
    if isinstance(net, torch.jit.ScriptModule):
        raise MeadaError(
            f"net must be an ordinary nn.Module, got TorchScript ({type(net).__name__}), whose layers take no hooks: "
            "give the Python module that it was made from"
        )


def check_gradients(net: nn.Module) -> None:
    """Refuse weights made in inference mode, which autograd does not accept."""
    if any(p.is_inference() for p in net.parameters()):
        raise MeadaError(
            "net must have weights that take gradients, got some made inside torch.inference_mode(): make or load the "
            "network outside of it"
        )


def per_channel(step_size: float | Tensor, x: Images) -> Tensor:
    """As a tensor that broadcasts over (B, C, H, W); one number per channel becomes (C, 1, 1)."""
    if step_size is None or isinstance(step_size, str):
        raise MeadaError(f"step_size must be a number or one number per channel ({x.shape[1]}), got {step_size!r}")
    eta = torch.as_tensor(step_size, dtype=x.dtype, device=x.device)
    eta = eta.view(-1, 1, 1) if eta.ndim == 1 else eta
    if not bool(eta.isfinite().all()):
        raise MeadaError(f"step_size must be finite, got {step_size!r}")
    sizes = (1, *x.shape[1:])  # not one per sample: an ascent takes some samples at a time
    if eta.ndim > x.ndim or any(a not in (1, b) for a, b in zip(eta.shape[::-1], sizes[::-1], strict=False)):
        got = tuple(torch.as_tensor(step_size).shape)
        raise MeadaError(f"step_size must be a number or one number per channel ({x.shape[1]}), got shape {got}")
    return eta


def check_classes(labels: Labels, classes: int) -> None:
    """Refuse labels outside the range of a network with ``classes`` outputs."""
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < classes:
        raise MeadaError(
            f"labels must be in 0..{classes - 1}, the classes of the network, "
            f"got {int(labels.min())} to {int(labels.max())}{ONE_OUTPUT if classes == 1 else ''}"
        )


def from_pil(picture: Any) -> NDArray[np.uint8]:
    """A PIL image as uint8 (C, H, W): grey stays one channel, anything else becomes colour."""
    pixels = np.asarray(picture if picture.mode == "L" else picture.convert("RGB"))
    return np.array(pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1))


def _tensor(values: Any, what: str) -> Tensor:
    if isinstance(values, Tensor):
        if values.layout != torch.strided or values.is_meta:
            got = "a meta tensor" if values.is_meta else f"layout {values.layout}"
            raise MeadaError(f"{what} must be a dense tensor, got {got}")
        return values.detach() if values.requires_grad else values
    try:
        if isinstance(values, list | tuple) and values and isinstance(values[0], Tensor):
            return torch.stack(list(values))
        pictures = isinstance(values, list | tuple) and values and hasattr(values[0], "convert")  # PIL's
        array = np.stack([from_pil(one) for one in values]) if pictures else np.asarray(values)
        array = np.asarray(array.tolist()) if array.dtype == object else array  # as pandas gives whole numbers
        return torch.from_numpy(np.require(array, array.dtype.newbyteorder("="), ["C", "W"]))
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise MeadaError(f"{what} must be a tensor, an array or a list of numbers, got {_seen(values)}") from error


def _first(values: Any) -> Any:
    """The first label of a sequence, if there is one."""
    several = isinstance(values, list | tuple | np.ndarray) and len(np.shape(values)) == 1 and len(values)
    return values[0] if several else None


def _seen(values: Any) -> str:
    if isinstance(values, list | tuple) and values:
        shapes = {tuple(v.shape) for v in values if hasattr(v, "shape")}
        sizes = f" of different shapes, such as {' and '.join(map(str, sorted(shapes)[:2]))}" if len(shapes) > 1 else ""
        return f"a {type(values).__name__} of {type(values[0]).__name__}{sizes}"
    dtype = getattr(values, "dtype", None)
    return type(values).__name__ + (f" of {dtype}" if dtype is not None else "")


def _check_shape(shape: tuple[int, ...]) -> None:
    if len(shape) == 3:
        raise MeadaError(f"images must have shape (N, C, H, W), got {shape}: {_three(shape)}")
    if len(shape) != 4:
        raise MeadaError(f"images must have shape (N, C, H, W), got {shape}")
    if shape[3] in CHANNELS and shape[1] > max(CHANNELS) and shape[2] > max(CHANNELS):
        raise MeadaError(
            f"images must have shape (N, C, H, W), got {shape}, which looks like (N, H, W, C): "
            "use images.permute(0, 3, 1, 2) (numpy: images.transpose(0, 3, 1, 2))"
        )
    if 0 in shape[1:]:
        raise MeadaError(f"images must have at least one channel and one pixel, got shape {shape}")


def _three(shape: tuple[int, ...]) -> str:
    if shape[2] in CHANNELS and shape[0] > max(CHANNELS):
        return "one image in the order (H, W, C)? use image.permute(2, 0, 1)[None]"
    one = "one image without a batch? use image[None]; " if shape[0] in CHANNELS else ""
    return one + "grey images (N, H, W)? use images[:, None]"


def _cause(low: float, high: float) -> str:
    if low < -ROUNDING:
        return (
            "images look normalised; put the normalisation into the network "
            "(meada.with_normalisation(net, mean, std)) and give it images in [0, 1]"
        )
    if high > NORMALISED:
        return "images look like 0..255; divide by 255 (or give them as uint8)"
    return "images look scaled; divide by their largest possible value, or clamp what a filter overshot"


def _two_dimensional(labels: Tensor) -> str:
    shape = tuple(labels.shape)
    if shape[1] == 1:
        return f"labels must have shape (N,), got {shape}: use labels[:, 0]"
    rows = labels.double()
    if bool(((rows == 0) | (rows == 1)).all() and (rows.sum(1) == 1).all()):
        return f"labels must be class numbers, got one-hot rows of shape {shape}: use labels.argmax(1)"
    return f"labels must be class numbers of shape (N,), got {shape}: probabilities of classes are not supported"


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
