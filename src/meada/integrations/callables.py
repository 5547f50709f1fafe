"""Augmentations of other libraries as spaces: torchvision v2, albumentations, kornia, or a function of one's own."""

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from meada.errors import MeadaError
from meada.spaces import Space, Theta
from meada.types import Families, Images

SEEDS = 1 << 31  # numpy's global generator takes 32 bits


def space_from(augment: Callable[..., Any], *, families: Families | set[str] = frozenset(), name: str = "") -> Space:
    """A space whose random views are made by ``augment``; it has no parameters, so ``meada.perturb`` refuses it.

    ``augment`` is a torchvision v2 transform or any function of one image (C, H, W) in [0, 1], a kornia
    augmentation, or an albumentations transform. Its random numbers (torch's, numpy's and Python's global ones,
    or albumentations' own) are set for every image, so that views repeat by seed; the caller's are left alone.

    Args:
        families: the kinds of change it makes (:data:`meada.types.Family`), so that validation can use others.

    >>> space = space_from(lambda image: image * torch.rand(()), families={"tone"})
    >>> from meada.maximise import hard_views
    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(12, 2))
    >>> hard_views(net, torch.rand(4, 3, 2, 2), torch.tensor([0, 1, 0, 1]), space=space).shape
    torch.Size([4, 3, 2, 2])
    """
    if not callable(augment) or isinstance(augment, type):
        raise MeadaError(f"augment must be a function of an image or a transform, got {augment!r}")
    apply = _albumentations if _from("albumentations", augment) else _kornia if _from("kornia", augment) else _plain

    def transform(x: Images, theta: Theta) -> Images:
        with _global_generators_kept():
            views = [_one(apply, augment, image, int(seed)) for image, seed in zip(x, theta["seed"], strict=True)]
        return torch.stack(views)

    return Space(
        draw=lambda numbers, shape: {"seed": numbers.integers("seed", SEEDS)},
        transform=transform,
        families=frozenset(families),  # type: ignore[arg-type]
        name=name or getattr(augment, "__name__", type(augment).__name__),
    )


def _one(apply: Callable[[Any, Tensor, int], Any], augment: Any, image: Tensor, seed: int) -> Tensor:
    torch.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)
    view = apply(augment, image.clone(), seed)  # a copy, since some augmentations work in place
    if not isinstance(view, Tensor) or view.shape != image.shape:
        got = f"shape {tuple(view.shape)}" if isinstance(view, Tensor) else type(view).__name__
        raise MeadaError(f"a view must be a tensor of shape {tuple(image.shape)}, as its image, got {got}")
    return view.to(image)


def _plain(augment: Any, image: Tensor, seed: int) -> Any:
    return augment(image)


def _kornia(augment: Any, image: Tensor, seed: int) -> Any:
    view = augment(image[None])
    return view[0] if isinstance(view, Tensor) and len(view) == 1 else view


def _albumentations(augment: Any, image: Tensor, seed: int) -> Any:
    augment.set_random_seed(seed)
    pixels = image.permute(1, 2, 0).cpu().float().numpy()
    view = np.asarray(augment(image=np.ascontiguousarray(pixels))["image"])
    return torch.from_numpy(np.ascontiguousarray(view)).permute(2, 0, 1) if view.ndim == 3 else view


def _from(library: str, augment: Any) -> bool:
    """Whether it is a class of the library, or holds transforms of it."""
    kinds = [type(augment), *(type(inner) for inner in augment.children())] if isinstance(augment, nn.Module) else []
    return any(kind.__module__.partition(".")[0] == library for kind in (*kinds, *type(augment).__mro__))


@contextmanager
def _global_generators_kept() -> Iterator[None]:
    with torch.random.fork_rng(), ExitStack() as stack:
        stack.callback(np.random.set_state, np.random.get_state())
        stack.callback(random.setstate, random.getstate())
        yield
