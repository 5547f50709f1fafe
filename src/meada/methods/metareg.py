"""MetaReg (Balaji et al., 2018): learn a penalty on the head with which training on one domain helps another.

First a network with a head theta_i for each domain is trained together with R_phi(theta) =
sum_k phi_k |theta_k|: a few steps on domain a with R_phi should be good for domain b. Then the
network itself is trained on all domains with R_phi added, phi fixed.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from meada.errors import check_range
from meada.methods.method import Context, Method, Parts, cross_entropy_loss
from meada.methods.parts.descent import Descent
from meada.methods.parts.domains import EachDomain, head_per_domain, members, shuffled, without_head
from meada.networks.embedding import head_of
from meada.types import Batch, Embedding, Labels, Scalar

Theta = dict[str, Tensor]  # weights of a head by name


def metareg(
    *, share: float = 0.25, inner_steps: int = 10, inner_lr: float = 0.01, phi_lr: float = 0.1, lr: float = 1e-3,
    momentum: float = 0.9,
) -> Method:  # fmt: skip
    """Meta-regularisation.

    Args:
        share: of all steps that the first stage takes, in which R_phi is learnt.
        inner_steps: l, the steps on domain a that phi's gradient passes through.
        inner_lr: rate of these.
        phi_lr: rate of phi's own descent.
        lr, momentum: of the first stage's network and heads.
    """
    check_range("metareg", "[0, 1)", share=share)
    check_range("metareg", "[1, inf)", inner_steps=inner_steps)
    check_range("metareg", "(0, inf)", inner_lr=inner_lr, phi_lr=phi_lr, lr=lr)

    def build(net: nn.Module, example: Batch, context: Context) -> Parts:
        heads = head_per_domain(net, example.x, len(context.domains), "metareg")
        trunk, phi = without_head(net), Regulariser(head_of(net))
        descent = Descent(name="sgd", lr=lr, momentum=momentum)
        return Parts(
            nn.ModuleDict({"trunk": trunk, "heads": heads, "phi": phi}),
            {
                "first stage": descent.build([*trunk.parameters(), *heads.parameters()]),
                "phi": torch.optim.SGD(phi.parameters(), phi_lr),
            },
        )

    def loss(net: nn.Module, batch: Batch, context: Context) -> Scalar:
        modules = context.parts.modules
        trunk, heads, phi = modules["trunk"], modules["heads"], modules["phi"]
        assert isinstance(heads, nn.ModuleList) and isinstance(phi, Regulariser)
        if context.step >= int(share * context.total_steps):
            # the network has had no gradient so far, and so is as it was at the start
            return cross_entropy_loss(net, batch, context) + phi(dict(head_of(net).named_parameters()), fixed=True)
        places = members(batch, "metareg", len(heads))
        z = [trunk(batch.x[of_one]) for of_one in places]
        y = [batch.y[of_one] for of_one in places]
        own = sum(cross_entropy(heads[d](z[d]), y[d]) for d in range(len(heads)))
        a, b = shuffled(len(heads), context.generator)[:2]
        theta: Theta = dict(heads[a].named_parameters())
        # features and heads are constants here: this term is phi's alone
        tuned = inner(theta, phi, z[a].detach(), y[a], steps=inner_steps, lr=inner_lr)
        return own + head_loss(tuned, z[b].detach(), y[b])

    return Method(
        loss=EachDomain(loss),
        build=build,
        title="MetaReg",
        about="Learn a penalty on the classifier that helps across source domains, then train with it.",
    )


class Regulariser(nn.Module):
    """R_phi, with a coefficient phi_k for every weight and bias of a head, initially zero."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.phi = nn.ParameterDict({name: torch.zeros_like(weight) for name, weight in layer.named_parameters()})

    def forward(self, theta: Theta, fixed: bool = False) -> Scalar:
        r""":math:`R_\phi(\theta) = \sum_k \phi_k |\theta_k|`; ``fixed``: no gradient for phi."""
        return torch.stack([
            ((self.phi[name].detach() if fixed else self.phi[name]) * weight.abs()).sum()
            for name, weight in theta.items()
        ]).sum()  # fmt: skip


def inner(theta: Theta, phi: Regulariser, z: Embedding, y: Labels, *, steps: int, lr: float) -> Theta:
    r"""l steps of :math:`\theta \leftarrow \theta - \alpha \nabla_\theta [L_a + R_\phi](\theta)`,

    of which every one is a function of phi that can be differentiated.
    """
    theta = {name: weight.detach().requires_grad_() for name, weight in theta.items()}
    for _ in range(steps):
        value = head_loss(theta, z, y) + phi(theta)
        slopes = torch.autograd.grad(value, list(theta.values()), create_graph=True)
        theta = {k: w - lr * g for (k, w), g in zip(theta.items(), slopes, strict=True)}
    return theta


def head_loss(theta: Theta, z: Embedding, y: Labels) -> Scalar:
    return cross_entropy(nn.functional.linear(z, theta["weight"], theta.get("bias")), y)
