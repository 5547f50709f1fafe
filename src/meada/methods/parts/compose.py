"""Combine two methods in one run: the loss of one with the pool growth of the other."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from meada.errors import MeadaError
from meada.images.augment import flip_and_crop
from meada.methods.method import Augment, Method, no_parts, unchanged
from meada.types import Families


def compose(loss: Method, grow: Method) -> Method:
    """A method with the loss of one method and the pool growth of another.

    Parts and an adapted network come from whichever of the two brings them, never from both.

    >>> from meada.methods.meada import meada
    >>> from meada.methods.mixup import mixup
    >>> both = compose(loss=mixup(), grow=meada())
    >>> both.growth(100, 2)
    400
    """
    if loss.build is not no_parts and grow.build is not no_parts:
        raise MeadaError("at most one of two combined methods may have modules of its own, got both")
    if loss.adapt is not unchanged and grow.adapt is not unchanged:
        raise MeadaError("at most one of two combined methods may replace the network, got both")
    return replace(
        grow,
        loss=loss.loss,
        build=grow.build if loss.build is no_parts else loss.build,
        adapt=grow.adapt if loss.adapt is unchanged else loss.adapt,
        augment=loss.augment,
        families=loss.families | grow.families,
        title=f"{grow.title} + {loss.title}",
        about=f"{grow.about} {loss.about}",
        passes=loss.passes,
    )


def augmented(method: Method, augment: Augment) -> Method:
    """The same method with ``augment`` applied to every batch before the loss; the pool does not change.

    The families that ``augment`` names in an attribute of that name count as trained on.
    """
    return replace(method, augment=augment, families=method.families | getattr(augment, "families", frozenset()))


@dataclass(frozen=True, kw_only=True)
class FlipCrop:
    """Section 4.3: standard random horizontal flips and crops with black padding."""

    padding: int = 4
    families: ClassVar[Families] = frozenset({"geometry"})

    def __post_init__(self) -> None:
        if self.padding < 0:
            raise MeadaError(f"flip_crop: padding must be 0 or more pixels, got {self.padding}")

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        return flip_and_crop(x, generator, self.padding)


AUGMENTS: dict[str, Callable[..., Augment]] = {"flip_crop": FlipCrop}
