"""Random numbers and random choices of operations that methods share, from the generator of the step."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from meada.images.tones import Levels
from meada.types import Images, Labels

Operation = Callable[..., Levels]  # of levels, and one number per image for each of its parameters


def uniform(like: Tensor, *shape: int, generator: torch.Generator) -> Tensor:
    """Uniform numbers in [0, 1), with the dtype and device of ``like``."""
    drawn = torch.rand(*shape, generator=generator, device=generator.device, dtype=torch.float64).to(like)
    return drawn.clamp_(max=1 - torch.finfo(like.dtype).eps / 2)  # rounding may reach 1


def randint(below: int, like: Tensor, *shape: int, generator: torch.Generator) -> Tensor:
    """Integers in [0, below), on the device of ``like``."""
    return torch.randint(below, shape, generator=generator, device=generator.device).to(like.device)


def beta(alpha: float, generator: torch.Generator) -> float:
    """One number from Beta(alpha, alpha)."""
    seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
    return float(np.random.default_rng(seed).beta(alpha, alpha))


def shuffle(x: Images, generator: torch.Generator) -> Labels:
    order = torch.randperm(len(x), generator=generator, device=generator.device)
    return order.to(x.device)


def apply_each(v: Levels, which: Labels, operations: Sequence[Operation], *strengths: Tensor) -> Levels:
    """Apply ``operations[which[i]]`` to image ``i``; images with the same operation go through it together.

    A negative number in ``which`` leaves the image as it is.
    """
    out = v.clone()
    for number, operation in enumerate(operations):
        mine = (which == number).nonzero().flatten()
        if len(mine):
            out[mine] = operation(v[mine], *(strength[mine] for strength in strengths))
    return out


def as_levels(x: Images) -> Levels:
    return x.mul(255).round_()
