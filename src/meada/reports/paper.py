"""The paper's printed numbers, read from ``paper.toml``."""

import tomllib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from meada.evaluation.statistics import Summary

PAPER: dict[str, Any] = tomllib.loads((files("meada.reports") / "paper.toml").read_text(encoding="utf-8"))


def printed(data: str, network: str, method: str, domain: str, domains: Sequence[str] = ()) -> Summary | None:
    """What Table 1, 2 or 3 prints for a method; ``mean`` is over ``domains``. None: the paper has no such number.

    >>> printed("digits", "lenet", "meada", "svhn")
    Summary(mean=42.0, std=1.74, n=10)
    >>> round(printed("digits", "lenet", "meada", "mean", ["svhn", "mnist_m", "usps"]).mean, 2)
    61.69
    """
    if data in PAPER["cifar"]:
        row = dict(zip(PAPER["cifar"]["methods"], PAPER["cifar"][data].get(network, ()), strict=False))
        return Summary(row[method], None, 1) if method in row and domain == "mean" and len(domains) == 15 else None
    table = PAPER.get(data, {})
    means, known = table.get("mean", {}).get(method), table.get("domains", ())
    asked = list(domains) if domain == "mean" else [domain]
    if means is None or not asked or not set(asked) <= set(known):
        return None
    places = [known.index(name) for name in asked]
    deviations = table.get("std", {}).get(method)
    std = float(deviations[places[0]]) if deviations and len(places) == 1 else None
    return Summary(sum(means[i] for i in places) / len(places), std, int(table.get("runs", 1)))
