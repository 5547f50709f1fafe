"""Epi-FCR (Li et al., 2019): train features and head each with a partner that was trained on another domain.

F and C are the network's features and head; F_i, C_i are those of a network trained on domain i
alone. In each episode, on images of another domain j: F must serve the foreign C_i, C must serve
the foreign F_i, and F must serve a random head. The foreign half is frozen.
"""

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from meada.errors import check_range
from meada.methods.method import Context, Method, Parts
from meada.methods.parts import domains
from meada.methods.parts.descent import Descent
from meada.networks.embedding import embedding_passes, head_of
from meada.networks.freezing import frozen
from meada.types import Batch, Scalar


def epi_fcr(
    *, lambda_f: float = 2.0, lambda_c: float = 0.05, lambda_r: float = 0.1, warm_up: float = 1 / 6, lr: float = 1e-3,
    momentum: float = 0.9, weight_decay: float = 1e-4,
) -> Method:  # fmt: skip
    """Episodic training of features, head, and features with a random head.

    Args:
        lambda_f: weight of F with a foreign head.
        lambda_c: weight of C with foreign features.
        lambda_r: weight of F with the random head.
        warm_up: share of the steps before the first episode.
        lr, momentum, weight_decay: of the SGD of the networks of one domain.
    """
    check_range("epi-fcr", "[0, inf)", lambda_f=lambda_f, lambda_c=lambda_c, lambda_r=lambda_r)
    check_range("epi-fcr", "[0, 1]", warm_up=warm_up)
    check_range("epi-fcr", "(0, inf)", lr=lr)
    descent = Descent(name="sgd", lr=lr, momentum=momentum, weight_decay=weight_decay)

    def build(net: nn.Module, example: Batch, context: Context) -> Parts:
        heads = domains.head_per_domain(net, example.x, len(context.domains), "epi-fcr")
        trunks = nn.ModuleList(domains.without_head(net) for _ in heads)
        stranger = domains.new_head(net).requires_grad_(False)
        return Parts(
            nn.ModuleDict({"features": trunks, "readouts": heads, "random": stranger}),
            {"domains": descent.build([*trunks.parameters(), *heads.parameters()])},
        )

    def loss(net: nn.Module, batch: Batch, context: Context) -> Scalar:
        modules = context.parts.modules
        trunks, heads, stranger = modules["features"], modules["readouts"], modules["random"]
        assert isinstance(trunks, nn.ModuleList) and isinstance(heads, nn.ModuleList)
        x, y, places = batch.x, batch.y, domains.members(batch, "epi-fcr", len(heads))
        with embedding_passes(net) as forward:
            logits, z = forward(x)
        value = domains.summed(cross_entropy(logits, y, reduction="none"), places)
        for f_d, c_d, own in zip(trunks, heads, places, strict=True):
            value = value + cross_entropy(c_d(f_d(x[own])), y[own])
        if context.step < int(warm_up * context.total_steps):
            return value
        i, j = domains.shuffled(len(heads), context.generator)[:2]
        abroad = places[j]  # images of domain j meet the halves of network i
        with_c_i = cross_entropy(domains.with_fixed_weights(heads[i], z[abroad]), y[abroad])
        with torch.no_grad(), frozen(trunks[i]):  # not trained, and its batch statistics do not move
            z_i = trunks[i](x[abroad])
        with_f_i = cross_entropy(head_of(net)(z_i), y[abroad])
        with_c_r = domains.summed(cross_entropy(domains.with_fixed_weights(stranger, z), y, reduction="none"), places)
        return value + lambda_f * with_c_i + lambda_c * with_f_i + lambda_r * with_c_r

    return Method(
        loss=domains.EachDomain(loss),
        build=build,
        title="Epi-FCR",
        about="Train features and classifier each against partners that were trained on another domain.",
        passes=(7 / 3, 2.0),
    )
