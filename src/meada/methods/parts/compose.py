"""Two methods in one run: one's minimisation phase with the other's maximisation phase."""

from collections.abc import Callable
from dataclasses import replace

from meada.errors import MeadaError
from meada.images.augment import flip_and_crop
from meada.methods.method import Augment, Method, no_parts, unchanged


def compose(loss: Method, grow: Method) -> Method:
    """``loss`` as the minimisation phase has it, ``grow`` as the maximisation phase has it.

    Parts and an adapted network come from whichever of the two brings them, never from both.

    >>> from meada.methods.meada import meada
    >>> from meada.methods.mixup import mixup
    >>> both = compose(loss=mixup(), grow=meada())
    >>> both.growth(100, 2)
    400
    """
    if loss.build is not no_parts and grow.build is not no_parts:
        raise MeadaError("both methods bring modules of their own: they cannot be composed")
    if loss.adapt is not unchanged and grow.adapt is not unchanged:
        raise MeadaError("both methods train a network of their own: they cannot be composed")
    return replace(
        grow,
        loss=loss.loss,
        build=grow.build if loss.build is no_parts else loss.build,
        adapt=grow.adapt if loss.adapt is unchanged else loss.adapt,
        augment=loss.augment,
    )


def augmented(method: Method, augment: Augment) -> Method:
    """The same method, whose loss sees every batch through ``augment``; the pool stays as it is."""
    return replace(method, augment=augment)


def flip_crop(*, padding: int = 4) -> Augment:
    """Section 4.3: standard random left-right flipping and cropping, from black margins."""
    if padding < 0:
        raise MeadaError(f"flip_crop: padding is {padding}: zero or more pixels are needed")
    return lambda x, generator: flip_and_crop(x, generator, padding)


AUGMENTS: dict[str, Callable[..., Augment]] = {"flip_crop": flip_crop}
