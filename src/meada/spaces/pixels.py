"""The paper's space: every pixel is a parameter of its own."""

from dataclasses import replace
from typing import NoReturn

from torch import Tensor

from meada.errors import MeadaError
from meada.spaces.space import Random, Shape, Space, Theta
from meada.types import Images


def pixels() -> Space:
    """The parameter theta is the image itself, so that a gradient step on theta is one on the pixels.

    There is no proper prior over images, so nothing can be drawn: use :func:`meada.perturb`.
    """
    return Space(
        draw=_no_prior, transform=_stored, families=frozenset({"noise"}), smooth=True, clamped=False, name="pixels"
    )


def ball(x0: Images, radius: float | Tensor) -> Space:
    """Pixels that stay in [0, 1] and within ``radius`` of ``x0`` in the maximum norm (PGD)."""

    def project(theta: Theta) -> Theta:
        return {"image": theta["image"].clamp(x0 - radius, x0 + radius).clamp(0, 1)}

    return replace(pixels(), project=project)


def _stored(x: Images, theta: Theta) -> Images:
    return theta["image"]


def _no_prior(random: Random, shape: Shape) -> NoReturn:
    raise MeadaError("space 'pixels' has no prior to sample from: use meada.perturb, or another space")
