"""Random numbers that methods share, drawn from the stream of the step."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from meada.images.tones import Levels
from meada.types import Images, Labels

Operation = Callable[..., Levels]  # levels, then one number an image for each thing that it asks


def uniform(like: Tensor, *shape: int, generator: torch.Generator) -> Tensor:
    """From [0, 1), of the kind and on the device of ``like``."""
    drawn = torch.rand(*shape, generator=generator, device=generator.device, dtype=torch.float64)
    return drawn.to(like)


def whole(below: int, like: Tensor, *shape: int, generator: torch.Generator) -> Tensor:
    """Whole numbers from 0 up to and without ``below``."""
    return torch.randint(below, shape, generator=generator, device=generator.device).to(like.device)


def beta(alpha: float, generator: torch.Generator) -> float:
    """One number from Beta(alpha, alpha)."""
    seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
    return float(np.random.default_rng(seed).beta(alpha, alpha))


def shuffle(x: Images, generator: torch.Generator) -> Labels:
    order = torch.randperm(len(x), generator=generator, device=generator.device)
    return order.to(x.device)


def each_its_own(v: Levels, which: Labels, operations: Sequence[Operation], *strengths: Tensor) -> Levels:
    """Image ``i`` through ``operations[which[i]]``, all images of an operation at once.

    A negative number in ``which`` leaves the image as it is.
    """
    out = v.clone()
    for number, operation in enumerate(operations):
        mine = (which == number).nonzero().flatten()
        if len(mine):
            out[mine] = operation(v[mine], *(strength[mine] for strength in strengths))
    return out


def as_levels(x: Images) -> Levels:
    return x.mul(255).round()
