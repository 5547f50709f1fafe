"""Tensors that depend on sizes alone, made once and shared."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import ParamSpec

import torch
from torch import Tensor

P = ParamSpec("P")


def constant(make: Callable[P, Tensor]) -> Callable[P, Tensor]:
    """Cache the tensors of ``make`` by its arguments; they must not be written to.

    It is made outside inference mode, whose tensors could not take part in a later backward pass.
    """

    @lru_cache(32)
    @wraps(make)
    def kept(*arguments: P.args, **named: P.kwargs) -> Tensor:
        with torch.inference_mode(False), torch.no_grad():
            return make(*arguments, **named)

    return kept  # type: ignore[return-value]
