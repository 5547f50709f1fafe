"""Several domains in one tree of pictures: train on some of them, test on the others.

PACS, VLCS, OfficeHome or anybody's own ``DOMAIN/CLASS/*.jpg``.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import torch

from meada.datasets.pictures.image_cache import Listing, Tell, load_images
from meada.datasets.pictures.tree import Entry, Split, Tree, part, read_tree
from meada.datasets.task import Samples, Sizes, Task
from meada.errors import MeadaError, nearest
from meada.files import data_root

T = TypeVar("T")


def domains(
    *,
    folder: str,
    targets: Sequence[str] = (),
    sources: Sequence[str] = (),
    side: int = 224,
    per_domain: int | None = None,
    held_out: float = 0.1,
    seed: int = 0,
    root: str | Path | None = None,
    cache: str | Path | None = None,
    tell: Tell | None = None,
) -> Task:
    """Train on ``sources``, test on ``targets``; of the two, the one left out is all the rest.

    So ``targets=["sketch"]`` is leave-one-domain-out, ``sources=["photo"]`` is single-source.

    Args:
        folder: the tree, as a path or below the data folder.
        side: width and height that every picture is resized to (bilinear).
        per_domain: train on at most this number of pictures of each source, spread over its classes.
        held_out: share of each class that chooses checkpoints, where the tree has no lists.
        seed: of that draw.
        root: the data folder; by default ``$MEADA_DATA``.
        cache: where decoded pictures are kept; by default ``$MEADA_CACHE``, else
            ``~/.cache/meada/images``.
        tell: called with the number of pictures decoded so far and in all.
    """
    _check(side, per_domain, held_out, seed)
    tree, learn, meet = _protocol_of(folder, root, sources, targets)
    fit, chosen, tests = _entries(tree, learn, meet, per_domain, held_out, seed)
    _disjoint(tree, fit, chosen)
    fits, some = "+".join(learn), "" if per_domain is None else f", {per_domain} of each"
    names = [f"train {fits}{some}", f"crossval {fits}", *(f"test {name}" for name in meet)]
    parts = _load(tree, dict(zip(names, [fit, chosen, *tests], strict=True)), side, cache, tell)
    return Task(
        classes=tree.classes,
        train=parts[0],
        validation=parts[1],
        targets=dict(zip(meet, parts[2:], strict=True)),
        sources=learn,
        provenance=_provenance(tree, learn, meet, (fit, chosen, tests), side),
    )


def domains_sizes(
    *,
    folder: str,
    targets: Sequence[str] = (),
    sources: Sequence[str] = (),
    side: int = 224,
    per_domain: int | None = None,
    held_out: float = 0.1,
    seed: int = 0,
    root: str | Path | None = None,
    **_: object,
) -> Sizes:
    """Counted in the tree: files are listed, none is opened."""
    tree, learn, meet = _protocol_of(folder, root, sources, targets)
    fit, _chosen, tests = _entries(tree, learn, meet, per_domain, held_out, seed)
    tested = {name: len(of_one[0]) for name, of_one in zip(meet, tests, strict=True)}
    return Sizes(len(tree.classes), sum(map(len, fit)), tested, len(learn), side)


def _protocol_of(
    folder: str, root: str | Path | None, sources: Sequence[str], targets: Sequence[str]
) -> tuple[Tree, tuple[str, ...], tuple[str, ...]]:
    tree = read_tree(Path(folder) if Path(folder).is_dir() else data_root(root) / folder)
    return tree, *protocol(tree.domains, sources, targets)


def _entries(
    tree: Tree, learn: Sequence[str], meet: Sequence[str], per_domain: int | None, held_out: float, seed: int
) -> tuple[list[list[Entry]], list[list[Entry]], list[list[list[Entry]]]]:
    """To train on and held out, by source; to test on, by target."""

    def entries(names: Sequence[str], split: Split) -> list[list[Entry]]:
        return [part(tree, name, split, held_out=held_out, seed=seed) for name in names]

    chosen = entries(learn, "crossval")
    fit = [spread(of_one, per_domain) for of_one in entries(learn, "train")]
    return fit, chosen, [[of_one] for of_one in entries(meet, "test")]


def protocol(
    known: Sequence[str], sources: Sequence[str], targets: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Which domains to train on and which to test on; whichever is not named is all the others.

    >>> protocol(["a", "c", "p", "s"], [], ["s"])
    (('a', 'c', 'p'), ('s',))
    """
    for name in (*sources, *targets):
        if name not in known:
            raise MeadaError(f"unknown domain '{name}': {nearest(name, known)}")
    both = [name for name in sources if name in targets]
    if both:
        raise MeadaError(f"domain '{both[0]}' is among sources and targets: it is one of the two")
    if not sources and not targets:
        raise MeadaError(f"name targets or sources among {', '.join(known)}")
    learn = tuple(sources) or tuple(name for name in known if name not in targets)
    meet = tuple(targets) or tuple(name for name in known if name not in sources)
    if not learn or not meet:
        raise MeadaError(f"all of {', '.join(known)} are named: sources and targets are both needed")
    return learn, meet


def _load(
    tree: Tree,
    parts: dict[str, list[list[Entry]]],
    side: int,
    cache: str | Path | None,
    tell: Tell | None,
) -> list[Samples]:
    """Read every part; faults of the tree and of its pictures are raised together."""
    listings = [
        Listing(name, tree.pictures, tuple(file for of_one in part for file, _ in of_one))
        for name, part in parts.items()
    ]
    empty = [f"no picture is left for '{listing.name}'" for listing in listings if not listing.files]
    images = load_images(listings, side, folder=cache, tell=tell or say, faults=[*tree.faults, *empty])
    return [Samples(x, *_labels(part)) for x, part in zip(images, parts.values(), strict=True)]


def _labels(part: list[list[Entry]]) -> tuple[torch.Tensor, torch.Tensor]:
    labels = [label for of_one in part for _, label in of_one]
    sizes = torch.tensor([len(of_one) for of_one in part])
    return torch.tensor(labels, dtype=torch.int64), torch.arange(len(part)).repeat_interleave(sizes)


def spread(entries: list[T], n: int | None) -> list[T]:
    """Evenly over a list that goes class by class."""
    if n is None or n >= len(entries):
        return entries
    return [entries[i * len(entries) // n] for i in range(n)]


def _disjoint(tree: Tree, fit: list[list[Entry]], chosen: list[list[Entry]]) -> None:
    held = {file for of_one in chosen for file, _ in of_one}
    tree.faults.extend(
        f"{file} is in the train list and in the crossval list" for of_one in fit for file, _ in of_one if file in held
    )


def _provenance(
    tree: Tree,
    learn: Sequence[str],
    meet: Sequence[str],
    parts: tuple[list[list[Entry]], list[list[Entry]], list[list[list[Entry]]]],
    side: int,
) -> dict[str, str]:
    by = "the published lists" if tree.lists else "a seeded draw by class"
    how = f"at {side}x{side} (Pillow, bilinear)"
    trained = {
        name: f"{len(fit):,} pictures to train on, {len(chosen):,} held out, by {by}, {how}"
        for name, fit, chosen in zip(learn, parts[0], parts[1], strict=True)
    }
    tested = {name: f"{len(part[0]):,} pictures to test on, {how}" for name, part in zip(meet, parts[2], strict=True)}
    return {**trained, **tested}


def _check(side: int, per_domain: int | None, held_out: float, seed: int) -> None:
    if side < 1 or (per_domain is not None and per_domain < 1) or seed < 0:
        raise MeadaError(
            "side and per_domain must be 1 or more and seed 0 or more, "
            f"got side={side}, per_domain={per_domain}, seed={seed}"
        )
    if not 0 < held_out < 1:
        raise MeadaError(f"held_out must be between 0 and 1, got {held_out}")


def say(done: int, total: int) -> None:
    """On a terminal, one line that counts."""
    if sys.stderr.isatty() and (done % 50 == 0 or done == total):
        end = "\n" if done == total else ""
        print(f"\rdecoding pictures, once: {done:,} of {total:,}", end=end, file=sys.stderr)
