"""A small attack: projected gradient steps that raise the loss within a ball (Madry et al., 2018).

No method here is a defence against it. It is measured next to clean accuracy because people ask.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from meada.datasets.task import Samples
from meada.evaluation.score import finite_logits
from meada.evaluation.selection import fixed_subset
from meada.maximise import ascend
from meada.networks.embedding import unwrap
from meada.networks.freezing import frozen
from meada.pool import as_float
from meada.spaces.pixels import ball
from meada.streams import stream
from meada.types import Images, Labels

RADIUS = 2.0  # levels of 255, in the maximum norm
STEPS = 10
REACH = 2.5  # times the radius: how far all steps together could go
BLOCK = 128  # images that are attacked at once


def pgd(net: nn.Module, x0: Images, y: Labels, *, radius: float, steps: int, generator: torch.Generator) -> Images:
    """From a random start, ``steps`` signed gradient steps, projected onto the ball and [0, 1]."""
    start = 2 * torch.rand(x0.shape, dtype=x0.dtype, generator=generator).to(x0.device) - 1
    x = (x0 + radius * start).clamp(0, 1)
    score = lambda x, step: cross_entropy(net(x), y, reduction="none")
    step, space = REACH * radius / steps, ball(x0, radius)
    with frozen(unwrap(net)):
        return ascend(score, space, x0, {"image": x}, steps=steps, step_size=step, direction=torch.sign)


def under_attack(
    net: nn.Module, domains: Mapping[str, Samples], *, n: int, radius: float = RADIUS, steps: int = STEPS
) -> dict[str, Any]:
    """Accuracy in per cent on ``n`` fixed images of each domain, before and under the attack."""
    net = unwrap(net)
    device = next(net.parameters()).device
    scores = {}
    for name, samples in domains.items():
        some = fixed_subset(name, samples, n)
        images, labels, noise = as_float(some.images), some.labels, stream("attack", name)
        before = finite_logits(net, images, name)
        parts = zip(images.to(device).split(BLOCK), labels.to(device).split(BLOCK), strict=True)
        moved = [pgd(net, x, y, radius=radius / 255, steps=steps, generator=noise) for x, y in parts]
        correct = [logits.argmax(-1) == labels for logits in (before, finite_logits(net, torch.cat(moved).cpu(), name))]
        clean, attacked = (100 * float(r.double().mean()) for r in correct)
        scores[name] = {"n": len(labels), "clean": clean, "attacked": attacked}
    return {"attack": "PGD", "radius": radius, "steps": steps, "domains": scores}
