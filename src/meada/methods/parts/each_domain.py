"""A loss that needs a batch of every source domain in each step: wrapped in this, it gets one."""

from dataclasses import dataclass

from torch import nn

from meada.methods.method import Context, Loss
from meada.types import Batch, Scalar


@dataclass(frozen=True)
class EachDomain:
    """The minimisation phase then draws ``batch_size`` samples from each domain, not from all."""

    loss: Loss

    def __call__(self, net: nn.Module, batch: Batch, context: Context) -> Scalar:
        return self.loss(net, batch, context)
