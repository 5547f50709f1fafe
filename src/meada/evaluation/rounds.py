"""What a maximisation round did: the terms of the objective before and after it, and the theory's

measures of the predictions, with a warning where it did nothing.
"""

from collections.abc import Collection
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from meada.entropy import entropy_of_mean, expected_entropy
from meada.networks.embedding import unwrap
from meada.networks.posterior import PosteriorOutputs, posterior_passes
from meada.pool import Pool
from meada.theory import entropy_deviation_bound, plug_in_entropy, sharper_deviation_bound
from meada.transport import semantic_cost
from meada.types import Images, Labels, PerSample

SAMPLE = 2_048  # so many, evenly spread over the block, tell of all
DRAWS = 8  # of a random network; a plain one is its own only draw
DELTA = 0.05  # the bounds hold with probability 1 - delta
LEVELS = 255  # 8 bits
NOTHING = 0.5  # levels: below it, rounding to 8 bits gives the parent back


def diagnose(
    net: nn.Module,
    pool: Pool,
    *,
    embedding: str | None = None,
    block: int = 256,
    beta: float | None = None,
    stochastic: Collection[str] = (),
) -> dict[str, Any]:
    """Of the latest block and its parents; for a random network, means over posterior draws."""
    net, born = unwrap(net), pool.blocks[-1]
    start, index = len(pool) - len(born.labels), looked_at(pool)
    device = next(net.parameters()).device
    rows, laws = [], []
    with (
        torch.inference_mode(),
        posterior_passes(net, embedding, count=DRAWS, stochastic=stochastic) as passes,
    ):
        for i in index.split(block):
            x0 = pool.images(born.parents[i]).to(device)
            x, y = pool.images(start + i).to(device), born.labels[i].to(device)
            before, after = passes(x0, 0), passes(x, 0)
            rows.append(_terms(before, after, y, _linf(x, x0)).double().cpu())
            laws.append(torch.stack([_law(before), _law(after)]).double().cpu())
    terms, law = torch.cat(rows), torch.cat(laws, 1)
    ce0, ce, h0, h, i0, i1, cost, linf = terms.mean(0).tolist()
    median, most = float(terms[:, 7].median()), float(terms[:, 7].max())
    return {
        "ce": [ce0, ce],
        "entropy": [h0, h],
        "plug_in_entropy": [float(plug_in_entropy(p)) for p in law],
        "information": [i0, i1],  # of label and weights; 0 for a network that is not random
        "rise": _rise(ce - ce0, h - h0, beta),
        "bound": _bounds(pool, index, classes=law.shape[2]),
        "cost": cost,
        "linf": linf,
        "linf_max": most,
        "linf_median": median,
        "levels": {"median": LEVELS * median, "max": LEVELS * most},
        "looked_at": len(index),
        "warnings": _warnings(pool.rounds, LEVELS * median),
    }


def looked_at(pool: Pool) -> Labels:
    """Places in the latest block, evenly spread over it."""
    n = len(pool.blocks[-1].labels)
    return torch.linspace(0, n - 1, min(n, SAMPLE), dtype=torch.float64).long()


def _terms(before: PosteriorOutputs, after: PosteriorOutputs, y: Labels, linf: PerSample) -> Float[Tensor, "B 8"]:
    (logits0, z0), (logits, z) = before, after
    draws = range(len(z))
    h0, h = expected_entropy(logits0), expected_entropy(logits)
    return torch.stack([
        torch.stack([cross_entropy(logits0[j], y, reduction="none") for j in draws]).mean(0),
        torch.stack([cross_entropy(logits[j], y, reduction="none") for j in draws]).mean(0),
        h0, h, entropy_of_mean(logits0) - h0, entropy_of_mean(logits) - h,
        torch.stack([semantic_cost(z[j], z0[j]) for j in draws]).mean(0), linf,
    ], 1)  # fmt: skip


def _law(drawn: PosteriorOutputs) -> Float[Tensor, "B K"]:
    """The prediction: the mean softmax over the draws."""
    return drawn[0].softmax(-1).mean(0)


def _rise(ce: float, h: float, beta: float | None) -> dict[str, float]:
    """How much of what was climbed is class confusion (CE) and how much uncertainty (beta h)."""
    rise = {"ce": ce, "entropy": h}
    if beta is None:
        return rise
    total = ce + beta * h
    return {**rise, "beta": beta, **({"share_of_ce": ce / total} if total > 0 else {})}


def _bounds(pool: Pool, index: Labels, classes: int) -> dict[str, Any]:
    """Proposition 3 for N independent images: copies of a sample do not count as samples."""
    n, seen = (len(s.unique()) for s in (pool.blocks[-1].sources, pool.blocks[-1].sources[index]))
    return {
        "n": n,
        "classes": classes,
        "delta": DELTA,
        "proposition_3": entropy_deviation_bound(n, classes, DELTA),
        "sharper": sharper_deviation_bound(n, classes, DELTA),
        "looked_at_n": seen,
        "looked_at_sharper": sharper_deviation_bound(seen, classes, DELTA),
    }


def _warnings(number: int, median: float) -> list[str]:
    if median >= NOTHING:
        return []
    return [
        f"round {number} did nothing: half of its samples moved by {median:.2g} of 255 levels or "
        "less; raise step_size, steps or beta, or lower gamma"
    ]


def _linf(x: Images, x0: Images) -> PerSample:
    return (x - x0).abs().flatten(1).amax(1)
