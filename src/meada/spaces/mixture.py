"""Mixtures of chains of transformations, blended with the clean image (AugMix, PRIME, AugMax)."""

from collections.abc import Sequence

import torch

from meada.errors import MeadaError
from meada.spaces.combine import one_of
from meada.spaces.space import Random, Shape, Space, Theta, per_image
from meada.types import Families, Images


def mixture(*spaces: Space, width: int = 3, depth: int = 3) -> Space:
    r"""Blend several chains: :math:`(1 - m) x + m \sum_i w_i chain_i(x)`.

    The weights w are Dirichlet(1, ..., 1), m is uniform in [0, 1], and a chain applies from 1 up to ``depth``
    of ``spaces``, each chosen uniformly per sample.
    """
    if width < 1 or depth < 1:
        raise MeadaError(f"width and depth must be 1 or more, got {width} and {depth}")
    link = one_of(*spaces, name="mixture")

    def draw(random: Random, shape: Shape) -> Theta:
        waits = -torch.log1p(-random.uniform("weights", width))  # exponential: over their sum, Dirichlet
        length = torch.stack([random.integers(f"length {i}", depth) for i in range(width)], 1)
        links = {
            f"{i} {j}": link.draw(random.named(f"link {i} {j}"), shape) for i in range(width) for j in range(depth)
        }
        return {"mix": random.uniform("mix"), "weights": waits / waits.sum(1, True), "length": length, "parts": links}

    def transform(x: Images, theta: Theta) -> Images:
        total = torch.zeros_like(x)
        for i in range(width):
            view = x
            for j in range(depth):
                on = per_image(theta["length"][:, i] >= j, x).bool()
                view = torch.where(on, link.apply(view, theta["parts"][f"{i} {j}"]), view)
            total = total + per_image(theta["weights"][:, i], x) * view
        return torch.lerp(x, total, per_image(theta["mix"], x))

    return Space(draw=draw, transform=transform, families=link.families, channels=link.channels, name="mixture")


def blend(vertices: Sequence[Images], families: Families = frozenset()) -> Space:
    r"""Mixtures of given images: :math:`(1 - m) x + m \sum_i softmax(q)_i v_i`, smooth in m and q.

    What the vertices are made by need not be differentiable (AugMax).
    """
    stack = torch.stack(list(vertices))

    def draw(random: Random, shape: Shape) -> Theta:
        return {"mix": random.uniform("mix"), "weights": random.uniform("weights", len(stack))}

    def transform(x: Images, theta: Theta) -> Images:
        share = theta["weights"].to(x).softmax(1).T[..., None, None, None]
        return torch.lerp(x, (share * stack).sum(0), per_image(theta["mix"], x))

    def project(theta: Theta) -> Theta:
        return {**theta, "mix": theta["mix"].clamp(0, 1)}

    return Space(draw=draw, transform=transform, families=families, smooth=True, project=project, name="blend")
