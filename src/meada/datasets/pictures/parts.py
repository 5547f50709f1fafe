"""Split a data set of pictures into parts: hold out a share, subsample, load, and record what was read."""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import torch

from meada.datasets.pictures.image_cache import Listing, load_images
from meada.datasets.pictures.listing import Picture
from meada.datasets.task import Samples
from meada.machine.terminal import Count
from meada.streams import stream

T = TypeVar("T")
Part = tuple[Path, Sequence[Picture]]  # pictures below a folder


def share(items: list[T], held_out: float, key: str) -> tuple[list[T], list[T]]:
    """Split one class into training and held-out pictures: at least one of two or more is held out."""
    order = torch.randperm(len(items), generator=stream("split", key)).tolist()
    cut = max(round(held_out * len(items)), 1) if len(items) > 1 else 0
    return [items[i] for i in sorted(order[cut:])], [items[i] for i in sorted(order[:cut])]


def spread(items: list[T], n: int | None) -> list[T]:
    """At most ``n`` items, evenly spaced over a list sorted by class."""
    if n is None or n >= len(items):
        return items
    return [items[i * len(items) // n] for i in range(n)]


def load(
    parts: Mapping[str, Part], classes: Sequence[str], domains: Sequence[str], side: int, *,
    cache: str | Path | None = None, tell: Count | None = None, faults: Sequence[str] = (), lenient: bool = True,
) -> list[Samples]:  # fmt: skip
    """Read every part; raise earlier ``faults`` together with those of the pictures."""
    listings = [Listing(name, root, tuple(p.file for p in some)) for name, (root, some) in parts.items()]
    images = load_images(listings, side, folder=cache, tell=tell or say, faults=faults, lenient=lenient)
    labelled = (_labels(some, classes, domains) for _, some in parts.values())
    return [Samples(x, *labels) for x, labels in zip(images, labelled, strict=True)]


def _labels(
    some: Sequence[Picture], classes: Sequence[str], domains: Sequence[str]
) -> tuple[torch.Tensor, torch.Tensor]:
    label = {name: k for k, name in enumerate(classes)}
    domain = {name: k for k, name in enumerate(domains)}
    several = any(p.labels for p in some)
    rows = [p.labels if several else label[p.label] for p in some]
    labels = torch.tensor(rows, dtype=torch.float32 if several else torch.int64)
    return labels, torch.tensor([domain.get(p.domain, 0) for p in some], dtype=torch.int64)


def provenance(
    sources: Sequence[str], fit: Sequence[Picture], kept: Sequence[Picture], tests: Mapping[str, Sequence[Picture]],
    side: int, by: str = "a seeded draw by class",
) -> dict[str, str]:  # fmt: skip
    """Number of pictures by domain and use."""
    how = f"at {side}x{side} (Pillow, bilinear)"
    trained, held = (Counter(p.domain for p in part) for part in (fit, kept))
    said = {k: f"{trained[k]:,} pictures to train on, {held[k]:,} held out, by {by}, {how}" for k in sources}
    return said | {name: f"{len(part):,} pictures to test on, {how}" for name, part in tests.items()}


def say(done: int, total: int) -> None:
    """Show progress as one line on a terminal."""
    if sys.stderr.isatty() and (done % 50 == 0 or done == total):
        end = "\n" if done == total else ""
        print(f"\rdecoding pictures, once: {done:,} of {total:,}", end=end, file=sys.stderr)
