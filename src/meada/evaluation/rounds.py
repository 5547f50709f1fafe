"""Diagnose a maximisation round: terms of the objective and spectrum of the perturbations."""

from collections.abc import Collection, Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.fft import fft2, fftfreq, fftshift
from torch.nn.functional import cross_entropy

from meada.entropy import entropy_of_mean, expected_entropy
from meada.networks.embedding import unwrap
from meada.networks.posterior import PosteriorOutputs, posterior_passes
from meada.pool import Pool
from meada.theory.bounds import entropy_deviation_bound, sharper_deviation_bound
from meada.theory.information import plug_in_entropy
from meada.transport import semantic_cost
from meada.types import Images, Labels, PerSample

SAMPLE = 2_048  # images of the block that are measured, evenly spread
BLOCK = 256  # of them at once
DRAWS = 8  # of a random network; a plain one is its own only draw
DELTA = 0.05  # the bounds hold with probability 1 - delta
LEVELS = 255  # 8 bits
INVISIBLE = 0.5  # levels: below it, rounding to 8 bits gives the parent back
INVISIBLE_WARNING = (
    "round {} did nothing: half of its samples moved by {:.2g} of 255 levels or less; "
    "raise step_size, steps or beta, or lower gamma"
)


def diagnose(
    net: nn.Module, pool: Pool, *,
    embedding: str | None = None, beta: float | None = None, stochastic: Collection[str] = (),
) -> dict[str, Any]:  # fmt: skip
    """Compare the latest block with its parents; for a random network, by means over posterior draws."""
    net, born = unwrap(net), pool.blocks[-1]
    start, index = len(pool) - len(born.labels), spread_index(pool)
    device = next(net.parameters()).device
    rows, laws = [], []
    with torch.inference_mode(), posterior_passes(net, embedding, count=DRAWS, stochastic=stochastic) as passes:
        for i in index.split(BLOCK):
            x0 = pool.images(born.parents[i]).to(device)
            x, y = pool.images(start + i).to(device), born.labels[i].to(device)
            before, after = passes(x0, 0), passes(x, 0)
            linf = (x - x0).abs().flatten(1).amax(1)
            rows.append(_terms(before, after, y, linf).double().cpu())
            laws.append(torch.stack([logits.softmax(-1).mean(0) for logits, _ in (before, after)]).double().cpu())
    terms, law = torch.cat(rows), torch.cat(laws, 1)
    ce0, ce, h0, h, i0, i1, cost, linf = terms.mean(0).tolist()
    median, most = float(terms[:, 7].median()), float(terms[:, 7].max())
    return {
        "ce": [ce0, ce],
        "entropy": [h0, h],
        "plug_in_entropy": [float(plug_in_entropy(p)) for p in law],
        "information": [i0, i1],  # of label and weights; 0 for a network that is not random
        "rise": _rise_shares(ce - ce0, h - h0, beta),
        "bound": _bounds(pool, index, classes=law.shape[2]),
        "cost": cost,
        "linf": linf,
        "linf_max": most,
        "linf_median": median,
        "levels": {"median": LEVELS * median, "max": LEVELS * most},
        "looked_at": len(index),
        "warnings": [] if LEVELS * median >= INVISIBLE else [INVISIBLE_WARNING.format(pool.rounds, LEVELS * median)],
    }


def spread_index(pool: Pool) -> Labels:
    """Evenly spaced sample indices of the latest block."""
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


def _rise_shares(ce: float, h: float, beta: float | None) -> dict[str, float]:
    """Shares of CE and of beta h in the rise of the objective."""
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


Power = Float[Tensor, "H W"]  # mean energy at each frequency, zero frequency in the middle
EDGES = tuple(k / 16 for k in range(8))  # cycles a pixel; the last band takes the corners too


def power(images: Images) -> Power:
    """Power spectrum, averaged over samples and channels; its sum is the mean squared norm of a channel.

    >>> flat = torch.ones(1, 1, 4, 4)
    >>> power(flat)[2, 2], power(flat).sum()
    (tensor(16.), tensor(16.))
    """
    energy = fft2(images.float(), norm="ortho").abs().square()
    return fftshift(energy.mean((0, 1)))


def bands(energy: Power) -> list[float]:
    """Share of the energy in each band of radius |f|, from low to high.

    >>> [round(part, 3) for part in bands(torch.ones(32, 32))]  # white noise
    [0.009, 0.035, 0.062, 0.082, 0.109, 0.129, 0.168, 0.405]
    """
    h, w = energy.shape
    radius = fftshift(torch.hypot(fftfreq(h)[:, None], fftfreq(w)[None]))
    place = torch.bucketize(radius, torch.tensor(EDGES), right=True) - 1
    sums = energy.new_zeros(len(EDGES)).index_add_(0, place.flatten(), energy.flatten())
    total = sums.sum()
    return (sums / total if total > 0 else sums).tolist()


def spectra(pool: Pool, index: Labels) -> tuple[Power, Power]:
    """Spectra of the perturbations of the latest block at ``index``, and of the images they were added to."""
    born, start = pool.blocks[-1], len(pool) - len(pool.blocks[-1].labels)
    moved = there = torch.zeros(pool.blocks[0].images.shape[2:], dtype=torch.float32)
    for i in index.split(BLOCK):
        parents, part = pool.images(born.parents[i]), len(i) / len(index)
        moved = moved + part * power(pool.images(start + i) - parents)
        there = there + part * power(parents)
    return moved, there


def in_bands(moved: Power, there: Power) -> dict[str, Any]:
    return {
        "edges": list(EDGES),
        "perturbation": bands(moved),
        "images": bands(there),
        "white": bands(torch.ones_like(moved)),  # what white noise would have
    }


def rounds_kept(gallery: Mapping[str, Tensor], part: str) -> list[int]:
    """Rounds for which a run's gallery has this part.

    >>> rounds_kept({"round-2.source": torch.ones(1), "round-1.source_guess": torch.ones(1)}, "source")
    [2]
    """
    found = [name.removeprefix("round-").rpartition(".") for name in gallery]
    return sorted(int(number) for number, _, end in found if end == part)
