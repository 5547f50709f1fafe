"""What a maximisation round did: the terms of the objective before and after it."""

from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from meada.entropy import softmax_entropy
from meada.networks.classifier import bare, watching
from meada.networks.rest import at_rest
from meada.pool import Pool
from meada.transport import semantic_cost
from meada.types import Images, PerSample

SAMPLE = 2_048  # so many, evenly spread over the block, tell of all


def diagnose(
    net: nn.Module, pool: Pool, *, embedding: str | None = None, block: int = 256
) -> dict[str, Any]:
    """CE, entropy, cost and size of the perturbation over the latest block and its parents."""
    net, born = bare(net), pool.blocks[-1]
    n, start = len(born.labels), len(pool) - len(born.labels)
    index = torch.linspace(0, n - 1, min(n, SAMPLE), dtype=torch.float64).long()
    device = next(net.parameters()).device
    rows = []
    with at_rest(net), torch.inference_mode(), watching(net, embedding) as forward:
        for i in index.split(block):
            x0 = pool.images(born.parents[i]).to(device)
            x, y = pool.images(start + i).to(device), born.labels[i].to(device)
            (logits0, z0), (logits, z) = forward(x0), forward(x)
            rows.append(torch.stack([
                cross_entropy(logits0, y, reduction="none"),
                cross_entropy(logits, y, reduction="none"),
                softmax_entropy(logits0), softmax_entropy(logits),
                semantic_cost(z, z0), _linf(x, x0),
            ], 1).double().cpu())  # fmt: skip
    terms = torch.cat(rows)
    ce0, ce, h0, h, cost, linf = terms.mean(0).tolist()
    return {
        "ce": [ce0, ce],
        "entropy": [h0, h],
        "cost": cost,
        "linf": linf,
        "linf_max": float(terms[:, 5].max()),
        "linf_median": float(terms[:, 5].median()),
        "looked_at": len(index),
    }


def _linf(x: Images, x0: Images) -> PerSample:
    return (x - x0).abs().flatten(1).amax(1)
