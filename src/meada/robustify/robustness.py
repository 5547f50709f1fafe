"""How both models bear what neither has seen: fifteen corruptions and the crafted shifts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from meada.corruptions import CORRUPTIONS, corrupt, frost_source
from meada.datasets import Samples
from meada.evaluation import evaluate
from meada.evaluation.selection import fixed_subset
from meada.evaluation.statistics import summarise
from meada.evaluation.validation_shifts import SHIFTS, shifted_once
from meada.pool import as_float

Tell = Callable[[str, int, int], None]
GROUPS = {
    "noise": CORRUPTIONS[:3],
    "blur": CORRUPTIONS[3:7],
    "weather": CORRUPTIONS[7:11],
    "digital": CORRUPTIONS[11:],
}


def robustness(
    nets: Mapping[str, nn.Module],
    held_out: Samples,
    *,
    images: int,
    severities: Sequence[int],
    seed: int,
    tell: Tell,
) -> dict[str, dict[str, Any]]:
    """For each network its scores under each corruption and each crafted shift.

    The same ``images`` of the held-out ones, and the same corrupted pixels, for all networks.
    """
    some = fixed_subset("robustness", held_out, images)
    found: dict[str, dict[str, Any]] = {
        name: {
            "images": len(some), "severities": list(severities), "seed": seed,
            "note": f"a fixed {len(some):,} of the {len(held_out):,} held-out pictures, "
            f"severity {', '.join(map(str, severities))} of 1 to 5 (frost: {frost_source()})",
            "corruptions": {}, "crafted": {},
        }
        for name in nets
    }  # fmt: skip
    for number, corruption in enumerate(CORRUPTIONS):
        tell("corruptions", number, len(CORRUPTIONS))
        parts = [corrupt(some.images, corruption, s, seed=seed) for s in severities]
        given = {corruption: (torch.cat(parts), some.labels.repeat(len(parts)))}
        for name, net in nets.items():
            found[name]["corruptions"] |= evaluate(net, given, severities=len(parts))
    tell("corruptions", len(CORRUPTIONS), len(CORRUPTIONS))
    shifted = shifted_once(as_float(some.images), SHIFTS, seed=seed)
    for name, net in nets.items():
        found[name]["crafted"] = evaluate(net, {k: (x, some.labels) for k, x in shifted.items()})
    return found


def rows(record: Mapping[str, Any]) -> dict[str, tuple[float, int]]:
    """What a before/after table shows of a record: accuracy and number of pictures by line."""
    beyond = record["robustness"]
    lines = {"held-out pictures": _one(record["source"]["last"])}
    lines["15 corruptions, mean"] = _mean(beyond["corruptions"])
    for group, names in GROUPS.items():
        lines[f"  {group}"] = _mean({name: beyond["corruptions"][name] for name in names})
    lines[f"{len(beyond['crafted'])} crafted shifts, mean"] = _mean(beyond["crafted"])
    for name, scores in record["results"]["last"].items():
        lines[f"test: {name}"] = _one(scores)
    return lines


def verdict(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Which model to take, by held-out pictures under corruptions alone: no test is looked at."""
    a, b = (record["robustness"]["corruptions"] for record in (before, after))
    found = summarise([b[name]["accuracy"] - a[name]["accuracy"] for name in b])
    method, n, change = after["method"], after["robustness"]["images"], found.mean
    # the corruptions' own spread, and what a single picture amounts to
    if abs(change) <= max(2 * (found.error or 0.0), 100 / n):
        return (
            f"Under corruptions {method} and ERM differ by {change:+.1f} points, "
            f"which {n} pictures cannot tell from none."
        )
    said = f"Under corruptions {method} is {abs(change):.1f} points"
    if change > 0:
        return f"{said} better than ERM: take the hardened model."
    return (
        f"{said} worse than ERM: take the plain model (erm/model.safetensors), or try a shorter "
        "method.step_size or another --method, such as augmix, in a new --out."
    )


def _one(scores: Mapping[str, Any]) -> tuple[float, int]:
    return float(scores["accuracy"]), int(scores["n"])


def _mean(scores: Mapping[str, Mapping[str, Any]]) -> tuple[float, int]:
    values = [float(one["accuracy"]) for one in scores.values()]
    return sum(values) / len(values), sum(int(one["n"]) for one in scores.values())
