"""A space: a family of image transformations with a prior over their parameters.

A space draws parameters theta from its prior, one set per sample, and applies them. To add one, write a
function that returns a :class:`Space`; ``wave.py`` is a short example. Random numbers come by name from
:class:`Random` and depend only on (seed, step, candidate, sample index): never on the batch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor

from meada.errors import MeadaError, check_numbers, nearest
from meada.streams import Streams, sample_streams
from meada.types import Families, Family, Images

Theta = dict[str, Any]  # tensors with one row per sample, and the parameters of inner spaces
Shape = Sequence[int]  # of the batch: (B, C, H, W)


@dataclass(frozen=True)
class Random:
    """Random numbers of a batch of views as tensors with one row per sample.

    >>> random = view_random(seed=0, step=5, candidate=2, index=[7, 8])
    >>> random.uniform("angle").shape, random.normal("kernel", 3, 3).shape
    (torch.Size([2]), torch.Size([2, 3, 3]))
    """

    own: Streams  # keyed by seed, step, candidate and sample
    common: Streams  # keyed by seed, step and candidate alone
    path: tuple[str, ...] = ()  # names by which ``own`` was reached, still to be applied to ``common``

    def __len__(self) -> int:
        return len(self.own)

    def __getitem__(self, rows: Any) -> "Random":
        rows = rows.numpy() if isinstance(rows, Tensor) else rows
        return Random(self.own[rows], self.common[rows], self.path)

    def named(self, name: str) -> "Random":
        """Independent random numbers for a nested space."""
        return Random(self.own.named(name), self.common, (*self.path, name))

    def bank(self, name: str, size: int) -> "Random":
        """Random numbers from a bank of ``size`` sets per step and candidate; each sample uses one set."""
        common = self.common.named("/".join((*self.path, name)))
        chosen = common.numbered(self.own.named(name).integers(size))
        return Random(chosen, chosen)

    def uniform(self, name: str, *shape: int, low: float = 0.0, high: float = 1.0) -> Tensor:
        drawn = torch.from_numpy(self.own.named(name).uniform(shape, low, high)).float()
        return drawn.clamp_(max=float(np.nextafter(np.float32(high), np.float32(low))))  # rounding may reach ``high``

    def normal(self, name: str, *shape: int) -> Tensor:
        return torch.from_numpy(self.own.named(name).normal(shape))

    def integers(self, name: str, below: int) -> Tensor:
        return torch.from_numpy(self.own.named(name).integers(below))

    def gumbel(self, name: str) -> Any:
        """Standard Gumbel numbers as a numpy array, for softmax sampling by argmax."""
        return -np.log(-np.log(self.own.named(name).uniform(()) + 2.0**-54))

    def distinct(self) -> tuple["Random", Tensor]:
        """The distinct random numbers of the samples, and the index of each sample's own."""
        _, first, group = np.unique(self.own.state[0], return_index=True, return_inverse=True)
        return self[first], torch.from_numpy(group)


def view_random(seed: int, step: int, candidate: Any, index: Any) -> Random:
    """The random numbers of views; ``candidate`` is one number or one per sample.

    >>> a, b = view_random(0, 5, 2, [7]), view_random(0, 5, [1, 2], [7, 7])
    >>> bool(a.normal("x", 4)[0].equal(b.normal("x", 4)[1]))
    True
    """
    own = sample_streams(seed, "views", step, index)
    common = sample_streams(seed, "views of a step", step, np.zeros(len(own), dtype=np.int64))
    return Random(own.numbered(candidate), common.numbered(candidate))


def unchanged(theta: Theta) -> Theta:
    return theta


@dataclass(frozen=True, kw_only=True)
class Space:
    """A family of transformations T_theta with a prior.

    Args:
        draw: ``draw(random, shape)`` gives theta from the prior: a dict of tensors with one row per sample, whose
            numbers come from ``random`` alone; ``shape`` is the batch's, (B, C, H, W).
        transform: ``transform(x, theta)`` gives the transformed images, of x's shape, not yet clamped.
        families: the kinds of image change it makes (``meada.types.Family``), so that validation can use the others.
        smooth: whether the result can be differentiated in theta's float tensors.
        project: puts theta back where it is allowed to be after a gradient step.
        clamped: whether a gradient ascent over theta sees clamped images; of pixels the paper clamps the result alone.
        channels: the channel counts it works on; empty for any.
        name: for error messages and reports.
    """

    draw: Callable[[Random, Shape], Theta]
    transform: Callable[[Images, Theta], Images]
    families: Families
    smooth: bool = False
    project: Callable[[Theta], Theta] = unchanged
    clamped: bool = True
    channels: tuple[int, ...] = ()
    name: str = ""

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.families) - set(get_args(Family))):
            raise MeadaError(f"families: unknown '{unknown[0]}': {nearest(unknown[0], get_args(Family))}")

    def apply(self, x: Images, theta: Theta, step: int | None = None) -> Images:
        """T_theta x, clamped to [0, 1]; ``step`` is named in the error if the result is not an image."""
        at = "" if step is None else f", step {step}"
        return self._made(x, theta, f"space '{self.name}'{at}").clamp(0, 1)

    def view(self, x: Images, random: Random, step: int = 0) -> Images:
        """A random view of each image; ``step`` is named in the error if the result is not an image."""
        if self.channels and x.shape[1] not in self.channels:
            allowed = " or ".join(map(str, self.channels))
            raise MeadaError(f"space '{self.name}': images must have {allowed} channels, got {x.shape[1]}")
        if not len(x):
            return x.clone()
        with torch.autocast(x.device.type, enabled=False):  # half precision is too coarse for the places of pixels
            wide = x if x.dtype in (torch.float32, torch.float64) else x.float()
            made = self._made(wide, self.draw(random, x.shape), f"space '{self.name}', step {step}")
            return made.clamp(0, 1).to(x.dtype)

    def _made(self, x: Images, theta: Theta, where: str) -> Images:
        """The transformed images; an error that begins with ``where`` if they are none, or if ``x`` was changed."""
        before = None if x.is_inference() else x._version
        try:
            made = self.transform(x, theta)
        except MeadaError as error:
            raise MeadaError(f"{where}: {error}") from error
        if before not in (None, x._version):
            raise MeadaError(f"{where}: the images that it is given must not be changed in place; use a copy")
        if not isinstance(made, Tensor) or made.shape != x.shape or not made.is_floating_point():
            got = f"shape {tuple(made.shape)} of {made.dtype}" if isinstance(made, Tensor) else type(made).__name__
            raise MeadaError(f"{where}: views must be floats of shape {tuple(x.shape)}, got {got}")
        if not bool(made.detach().sum(dtype=torch.float32).isfinite()):  # of a pixel that is not, neither is the sum
            raise MeadaError(f"{where}: views must be finite, got NaN or infinity")
        return made.to(x.dtype)


def per_image(values: Tensor, like: Images) -> Tensor:
    """Reshape (B, ...) to broadcast over (B, C, H, W), with the dtype and device of ``like``.

    Axes are added at the end: (B,) and (B, 1) give one number per image, (B, C) one per channel.
    """
    return values.to(like).reshape(*values.shape, *[1] * (4 - values.ndim))


def positive(name: str, value: float) -> float:
    """The value, checked to be a finite number greater than 0."""
    check_numbers(**{name: value})
    if not value > 0:
        raise MeadaError(f"{name} must be greater than 0, got {value}")
    return value


def unpacked(theta: Theta, like: Images) -> tuple[list[Tensor], Callable[[Sequence[Tensor]], Theta]]:
    """The float tensors in theta, including inner spaces, and a function to replace them."""
    floats = [v for v in theta.values() if isinstance(v, Tensor) and v.is_floating_point()]
    inner = {name: unpacked(v, like) for name, v in theta.items() if isinstance(v, dict)}
    values = [v.to(like) for v in floats] + [v for some, _ in inner.values() for v in some]

    def rebuild(values: Sequence[Tensor]) -> Theta:
        rest = iter(values)
        changed: Theta = {n: next(rest) for n, v in theta.items() if isinstance(v, Tensor) and v.is_floating_point()}
        for name, (some, build) in inner.items():
            changed[name] = build([next(rest) for _ in some])
        return {**theta, **changed}

    return values, rebuild
