"""MLDG (Li et al., 2018): take steps on some domains that also lower the loss on a domain held out from the step.

One source domain at random plays the unseen one. F is the risk on the others, G the risk on it
after a step down F: the network descends F(theta) + beta G(theta - alpha grad F(theta)).
"""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from meada.errors import MeadaError, check_range
from meada.methods.method import Context, Method
from meada.methods.parts.domains import EachDomain, Places, members, shuffled, summed
from meada.types import Batch, Scalar


def mldg(*, alpha: float = 1e-3, beta: float = 1.0, order: Literal["second", "first"] = "second") -> Method:
    """Meta-learning domain generalisation.

    Args:
        alpha: length of the step that G is measured after.
        beta: weight of G.
        order: ``second`` differentiates through that step; ``first`` takes grad F as a constant.
    """
    check_range("mldg", "[0, inf)", alpha=alpha, beta=beta)
    if order not in ("second", "first"):
        raise MeadaError(f"mldg: order must be 'second' or 'first', got '{order}'")

    def loss(net: nn.Module, batch: Batch, context: Context) -> Scalar:
        places = members(batch, "mldg")
        unseen, *seen = (places[k] for k in shuffled(len(places), context.generator))
        theta: dict[str, Tensor] = {name: weight for name, weight in net.named_parameters() if weight.requires_grad}
        f = loss_of(net, theta, batch, seen)
        grad_f = torch.autograd.grad(
            f, list(theta.values()), create_graph=order == "second", retain_graph=True, materialize_grads=True
        )
        after = {k: w - alpha * g for (k, w), g in zip(theta.items(), grad_f, strict=True)}
        return f + beta * loss_of(net, after, batch, [unseen])

    return Method(
        loss=EachDomain(loss),
        title="MLDG",
        about="Take steps on some source domains that also help on one held out from the step.",
        passes=(1.0, 3.0 if order == "second" else 2.0),
    )


def loss_of(net: nn.Module, theta: dict[str, Tensor], batch: Batch, places: Places) -> Scalar:
    """Sum of the losses of some domains, with the weights ``theta``."""
    x, y = batch.x[torch.cat(places)], batch.y[torch.cat(places)]
    ce = cross_entropy(functional_call(net, theta, (x,)), y, reduction="none")
    return summed(ce, list(torch.arange(len(y), device=y.device).split([len(of_one) for of_one in places])))
