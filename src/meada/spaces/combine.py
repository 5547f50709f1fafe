"""Combinations of spaces: one of several, several in a row, a blend with the clean image."""

from collections.abc import Callable
from dataclasses import replace

import torch

from meada.errors import MeadaError
from meada.spaces.space import Random, Shape, Space, Theta, per_image
from meada.types import Families, Images


def one_of(*spaces: Space, name: str = "one_of") -> Space:
    """Each sample goes through one of ``spaces``, chosen uniformly."""

    def draw(random: Random, shape: Shape) -> Theta:
        which = random.integers("which", len(spaces))
        order, counts = which.argsort(stable=True), which.bincount(minlength=len(spaces)).tolist()
        rows = {str(i): mine for i, mine in enumerate(order.split(counts)) if len(mine)}
        parts = {i: spaces[int(i)].draw(random[mine].named(i), (len(mine), *shape[1:])) for i, mine in rows.items()}
        return {"rows": rows, "parts": parts}

    def transform(x: Images, theta: Theta) -> Images:
        out = torch.empty_like(x)
        for number, part in theta["parts"].items():
            mine = theta["rows"][number].to(x.device)
            out.index_copy_(0, mine, spaces[int(number)].apply(x.index_select(0, mine), part))
        return out

    return _combined(spaces, draw, transform, name)


def chain(*spaces: Space, name: str = "chain") -> Space:
    """Each sample goes through all of ``spaces`` in order; pixels are clamped to [0, 1] in between."""

    def draw(random: Random, shape: Shape) -> Theta:
        return {"parts": {str(i): space.draw(random.named(str(i)), shape) for i, space in enumerate(spaces)}}

    def transform(x: Images, theta: Theta) -> Images:
        for number, part in theta["parts"].items():
            x = spaces[int(number)].apply(x, part)
        return x

    return _combined(spaces, draw, transform, name)


def skip_mix(space: Space) -> Space:
    """Blend with the clean image: :math:`(1 - m) x + m T_theta x`, with m uniform in [0, 1] per sample."""
    _check(space, "skip_mix")

    def draw(random: Random, shape: Shape) -> Theta:
        return {"mix": random.uniform("mix"), "parts": {"0": space.draw(random.named("0"), shape)}}

    def transform(x: Images, theta: Theta) -> Images:
        return torch.lerp(x, space.apply(x, theta["parts"]["0"]), per_image(theta["mix"], x))

    def project(theta: Theta) -> Theta:
        parts = {"0": space.project(theta["parts"]["0"])}
        return {**theta, "mix": theta["mix"].clamp(0, 1), "parts": parts}

    return replace(space, draw=draw, transform=transform, project=project)


def _check(space: object, name: str) -> None:
    if not isinstance(space, Space):
        raise MeadaError(f"{name} must be given meada.Space objects, got {type(space).__name__}")


def _combined(
    spaces: tuple[Space, ...], draw: Callable[[Random, Shape], Theta], transform: Callable[[Images, Theta], Images],
    name: str,
) -> Space:  # fmt: skip
    if not spaces:
        raise MeadaError(f"{name} must be given at least one space, got none")
    for space in spaces:
        _check(space, name)

    def project(theta: Theta) -> Theta:
        parts = {number: spaces[int(number)].project(part) for number, part in theta["parts"].items()}
        return {**theta, "parts": parts}

    families: Families = frozenset().union(*(space.families for space in spaces))
    limits = [set(space.channels) for space in spaces if space.channels]
    channels = tuple(sorted(set.intersection(*limits))) if limits else ()
    if limits and not channels:
        raise MeadaError(f"{name}: spaces must have a number of channels in common, got none")
    return Space(
        draw=draw,
        transform=transform,
        families=families,
        smooth=all(space.smooth for space in spaces),
        project=project,
        channels=channels,
        name=name,
    )
