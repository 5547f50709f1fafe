"""AGG (Li et al., 2019): ERM on all source domains at once, the baseline of Table 2."""

from torch import nn
from torch.nn.functional import cross_entropy

from meada.methods.method import Context, Method, risk
from meada.methods.parts.domains import places_of, summed
from meada.methods.parts.each_domain import EachDomain
from meada.types import Batch, Scalar


def agg(*, each_domain: bool = False) -> Method:
    """The sources pooled, as in the paper; or a batch of each domain, as in AGG's own code."""
    return Method(
        loss=EachDomain(sum_of_risks) if each_domain else risk,
        title="AGG",
        about="Plain training on the images of all source domains together.",
    )


def sum_of_risks(net: nn.Module, batch: Batch, context: Context) -> Scalar:
    r"""One mean for each domain, added up: :math:`\sum_d \mathrm{mean}_{i \in d}\, CE_i`."""
    ce = cross_entropy(net(batch.x), batch.y, reduction="none")
    return summed(ce, places_of(batch))
