"""ERM (Vapnik, 1998): the mean loss on the source. AGG (Li et al., 2019): the same on all source domains."""

from torch import nn
from torch.nn.functional import cross_entropy

from meada.methods.method import Context, Method, cross_entropy_loss
from meada.methods.parts.domains import EachDomain, places_of, summed
from meada.types import Batch, Scalar


def erm() -> Method:
    return Method(title="ERM", about="Plain training: minimise the mean loss on the source images.")


def agg(*, each_domain: bool = False) -> Method:
    """The sources pooled, as in the paper; or a batch of each domain, as in AGG's own code."""

    def sum_of_losses(net: nn.Module, batch: Batch, context: Context) -> Scalar:
        return summed(cross_entropy(net(batch.x), batch.y, reduction="none"), places_of(batch))

    return Method(
        loss=EachDomain(sum_of_losses) if each_domain else cross_entropy_loss,
        title="AGG",
        about="Plain training on the images of all source domains together.",
    )
