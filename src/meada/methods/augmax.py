"""AugMax (Wang et al., 2021): AugMix with adversarial mixing weights."""

from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from meada.errors import check_range
from meada.images.random_ops import as_levels
from meada.maximise import ascend
from meada.methods.augmix import chain, mixed
from meada.methods.method import Context, Method
from meada.methods.parts.views import batch_random, views_loss
from meada.networks.embedding import unwrap
from meada.networks.freezing import frozen
from meada.spaces.mixture import blend
from meada.types import Batch, Images, PerSample, Scalar


def augmax(
    *, width: int = 3, depth: int = 3, severity: float = 3.0, steps: int = 5, consistency: float = 10.0
) -> Method:
    """Cross-entropy of the clean image plus ``consistency`` times its divergence from an AugMax and an AugMix copy.

    The authors train with separate batch-norm statistics for the AugMax copy; here all copies share them.

    Args:
        width, depth, severity: of AugMix's chains.
        steps: ascent steps on the mixing weights; a sample stops once it is misclassified.
        consistency: weight of the divergence.
    """
    check_range("augmax", "[1, inf)", width=width, depth=depth)
    check_range("augmax", "[0.1, 10]", severity=severity)
    check_range("augmax", "[0, inf)", steps=steps, consistency=consistency)
    chains: dict[str, Any] = {"width": width, "depth": depth, "severity": severity}

    def loss(net: nn.Module, batch: Batch, context: Context) -> Scalar:
        hard = hardest_mixture(net, batch, context, chains=chains, steps=steps)
        random = mixed(batch.x, context.each, **chains)
        return views_loss(net, batch, [batch.x, hard, random], labelled=1, consistency=consistency)

    return Method(
        loss=loss,
        families=frozenset({"tone", "geometry"}),
        title="AugMax",
        about="AugMix with one copy whose mixing weights are moved to where the network is wrong.",
        passes=(3.0 + steps, 3.0 + steps),
    )


def hardest_mixture(net: nn.Module, batch: Batch, context: Context, *, chains: dict[str, Any], steps: int) -> Images:
    """A mixture of AugMix chains whose weights climb the loss until the sample is misclassified."""
    levels, links = as_levels(batch.x), (chains["depth"], chains["severity"])
    vertices = [chain(levels, context.each, *links) / 255 for _ in range(chains["width"])]
    space, inner = blend(vertices), unwrap(net)
    fooled = torch.zeros_like(batch.y, dtype=torch.bool)

    def score(x: Images, step: int) -> PerSample:
        logits = inner(x)
        fooled.logical_or_(logits.argmax(-1) != batch.y)
        return cross_entropy(logits, batch.y, reduction="none") * ~fooled

    theta = space.draw(batch_random(batch, context), batch.x.shape)
    with frozen(inner):
        return ascend(score, space, batch.x, theta, steps=steps, step_size=0.1, direction=torch.sign)
