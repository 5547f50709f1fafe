"""Fusion (Mancini et al., 2018): one head per source domain, weighted by predicted domain probabilities.

The logits are sum_i w_i(x) z_i(x), z_i the i-th source's head on shared features and w(x) a
guess at the image's domain; what teaches the guess stops before the features.
"""

from copy import deepcopy

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from meada.errors import MeadaError, check_range
from meada.methods.method import Context, Method
from meada.methods.par import layer_outputs
from meada.methods.parts.domains import EachDomain, members
from meada.networks.embedding import head_of, set_head
from meada.streams import stream
from meada.types import Batch, Embedding, Logits, Scalar


def fusion(*, domains: int = 3, weight: float = 1.0, uniform: float = 0.25) -> Method:
    """Heads of each source, mixed.

    Args:
        domains: number of sources in the data, and of heads.
        weight: of the domain branch's own cross-entropy.
        uniform: share of the mixing weights that is the same for all heads, the paper's alpha.
    """
    check_range("fusion", "[2, inf)", domains=domains)
    check_range("fusion", "[0, inf)", weight=weight)
    check_range("fusion", "[0, 1]", uniform=uniform)

    def adapt(net: nn.Module) -> nn.Module:
        net = deepcopy(net)
        return set_head(net, Mixture(head_of(net), domains, uniform))

    def loss(net: nn.Module, batch: Batch, context: Context) -> Scalar:
        members(batch, "fusion", domains)  # refuses a batch of fewer domains, or of more
        assert batch.domain is not None
        domain = batch.domain.unique(return_inverse=True)[1]  # 0, 1, ... in the order of the domains' numbers
        branch = next((name for name, module in net.named_modules() if isinstance(module, Mixture)), None)
        if branch is None:
            raise MeadaError('fusion: net must be adapted by METHODS["fusion"]().adapt(net), got another network')
        with layer_outputs(net, f"{branch}.domain") as seen:
            logits = net(batch.x)
        return cross_entropy(logits, batch.y) + weight * cross_entropy(seen[-1], domain)

    return Method(
        loss=EachDomain(loss),
        adapt=adapt,
        title="Fusion",
        about="Give each source domain its own classifier, and mix them by which domain the image looks like.",
    )


class Mixture(nn.Module):
    """Replaces the head: one copy of it per source, and a domain classifier."""

    def __init__(self, layer: nn.Linear, domains: int, uniform: float) -> None:
        super().__init__()
        self.uniform = uniform
        branch = nn.Linear(layer.in_features, domains)
        # hardly a guess at first, and the same whatever has been drawn before
        nn.init.normal_(branch.weight, std=1e-3, generator=stream(0, "fusion"))
        nn.init.zeros_(branch.bias)
        self.domain = branch.to(layer.weight)
        self.heads = nn.ModuleList(deepcopy(layer) for _ in range(domains))

    def weights(self, z: Embedding) -> Float[Tensor, "B S"]:
        r""":math:`w = (1 - \alpha)\,\mathrm{softmax}(d(z)) + \alpha / S`.

        No gradient goes back to the features in training; in eval mode it is the true one, for the ascent on x.
        """
        p = self.domain(z.detach() if self.training else z).softmax(-1)
        return (1 - self.uniform) * p + self.uniform / p.shape[1]

    def forward(self, z: Embedding) -> Logits:
        w = self.weights(z)
        # after the domain branch: the input of the last nn.Linear reached is z, with its gradient
        each = torch.stack([head(z) for head in self.heads], dim=1)
        return (w[..., None] * each).sum(1)
