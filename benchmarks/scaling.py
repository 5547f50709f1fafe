"""Estimate images, bytes and hours of a run from the rates of a benchmark record.

python -m benchmarks.scaling benchmarks/results.json docs/scaling.md
"""

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.report import machine, markdown_table, update
from benchmarks.subjects import STEPS
from meada.methods.meada import GROWTH

HEAD = [
    "data", "K", "rule", "images in D", "8 bits", "of it on disk", "images made",
    "ascent", "one pass over D",
]  # fmt: skip


@dataclass(frozen=True)
class Experiment:
    """n images of a given size, and the benchmarked network whose speed is assumed."""

    n: int
    pixels: int  # height and width; three channels
    network: str
    batch: int
    steps: int  # T_max


EXPERIMENTS = {
    "CIFAR": Experiment(50_000, 32, "wideresnet", 128, 15),
    "PACS without art": Experiment(7_943, 224, "alexnet", 32, 50),
    "ImageNet-1k": Experiment(1_281_167, 224, "alexnet", 32, 15),
}


def climbed(n: int, rounds: int, rule: str) -> int:
    """Number of images that go through the ascent: all that are added to the source.

    >>> climbed(10_000, 3, "pool"), climbed(10_000, 3, "latest")
    (70000, 30000)
    """
    return GROWTH[rule](n, rounds) - n


def gigabytes(images: int, pixels: int) -> float:
    """Size of the images in 10^9 bytes: three channels, 8 bits.

    >>> gigabytes(200_000, 32)
    0.6144
    """
    return 3e-9 * images * pixels**2


def rates(record: Mapping[str, Any], network: str) -> tuple[float, float]:
    """Seconds of one ascent step and of one descent step, for one image."""
    cases = record["cases"]
    up = cases[f"maximise-{network}"]["sides"]["meada"]["median"]
    down = cases[f"minimise-{network}"]["sides"]["meada"]["median"]
    return up / 1e3 / STEPS, down / 1e3


def rows(record: Mapping[str, Any]) -> list[list[str]]:
    """A row per experiment, number of rounds and growth rule; with K = 1 all rules agree."""
    lines = []
    for name, it in EXPERIMENTS.items():
        up, down = rates(record, it.network)
        for rounds in (1, 2, 3):
            for rule in ("pool", "latest") if rounds > 1 else ("any",):
                kind = "pool" if rule == "any" else rule
                size, born = GROWTH[kind](it.n, rounds), climbed(it.n, rounds, kind)
                lines.append([
                    name, str(rounds), "pool" if rule == "pool" else "latest, source"
                    if rule == "latest" else "any", f"{size:,}",
                    _bytes(gigabytes(size, it.pixels)), _bytes(gigabytes(born, it.pixels)),
                    f"{born:,}", _time(born * it.steps * up), _time(size / it.batch * down),
                ])  # fmt: skip
    return lines


def page(record: Mapping[str, Any], source: str) -> str:
    found = [
        f"- {network}: {1e3 * up:.3g} ms for an image's ascent step, {1e3 * down:.3g} ms for a "
        f"step on a batch of {batch}"
        for network, batch in (("wideresnet", 128), ("alexnet", 32))
        for up, down in [rates(record, network)]
    ]
    made = f"Rates from `{source}` ({machine(record)}):"
    return "\n\n".join([made, "\n".join(found), markdown_table(HEAD, rows(record))])


def _bytes(gb: float) -> str:
    return f"{1000 * gb:.0f} MB" if gb < 1 else f"{gb:,.1f} GB"


def _time(seconds: float) -> str:
    """
    >>> _time(90.0), _time(5400.0), _time(900_000.0)
    ('2 min', '1.5 h', '10.4 days')
    """
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("record", type=Path)
    options.add_argument("page", type=Path)
    chosen = options.parse_args()
    record = json.loads(chosen.record.read_text(encoding="utf-8"))
    update(chosen.page, page(record, str(chosen.record)))


if __name__ == "__main__":
    main()
