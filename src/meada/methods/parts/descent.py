"""The optimiser of the minimisation phase and its learning rate schedule."""

import math
from collections.abc import Iterable
from typing import Any, Literal

import torch
from pydantic import Field, PrivateAttr
from torch.optim import Optimizer

from meada.settings import Settings


class Descent(Settings):
    """The optimiser. Its ``weight_decay`` stands for I(X;Z) (section 3): L2, added to the gradient, not decoupled."""

    name: Literal["adam", "sgd"] = "adam"
    lr: float = Field(1e-4, gt=0)  # the paper's alpha
    weight_decay: float = Field(0.0, ge=0)
    momentum: float = Field(0.0, ge=0, lt=1)  # SGD only
    nesterov: bool = False  # SGD only
    schedule: Literal["constant", "cosine"] = "constant"

    def build(self, weights: Iterable[torch.nn.Parameter]) -> Optimizer:
        # fused: one pass over the weights instead of one an operation
        common: dict[str, Any] = {"lr": self.lr, "weight_decay": self.weight_decay, "fused": True}
        if self.name == "adam":
            return torch.optim.Adam(weights, **common)
        return torch.optim.SGD(weights, momentum=self.momentum, nesterov=self.nesterov, **common)

    def set_rate(self, optimiser: Optimizer, step: int, total_steps: int) -> None:
        for group in optimiser.param_groups:
            group["lr"] = self.rate(step, total_steps)

    def rate(self, step: int, total_steps: int) -> float:
        """The learning rate of a step, counted from 0.

        >>> [round(Descent(lr=0.1, schedule="cosine").rate(t, 4), 4) for t in (0, 2, 4)]
        [0.1, 0.05, 0.0]
        """
        if self.schedule == "constant":
            return self.lr
        return self.lr * (1 + math.cos(math.pi * step / total_steps)) / 2


class AsGiven(Descent):
    """An optimiser made by the caller, used with its own learning rates."""

    _optimiser: Optimizer = PrivateAttr()

    def __init__(self, optimiser: Optimizer) -> None:
        super().__init__()
        self._optimiser = optimiser

    def build(self, weights: Iterable[torch.nn.Parameter]) -> Optimizer:
        return self._optimiser

    def set_rate(self, optimiser: Optimizer, step: int, total_steps: int) -> None:
        """Do nothing: the caller sets the learning rates."""
