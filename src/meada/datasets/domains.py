"""Several domains in one tree of pictures: train on some of them, test on the others.

PACS (section 4.2), VLCS, OfficeHome or anybody's own ``DOMAIN/CLASS/*.jpg``.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch

from meada.datasets.pictures.image_cache import Listing, load_images
from meada.datasets.pictures.tree import Entry, Tree, part, read_tree
from meada.datasets.published.catalogue import PACS, advice
from meada.datasets.task import Samples, Sizes, Task
from meada.errors import MeadaError, check_range, nearest
from meada.files import data_root
from meada.machine.terminal import Count

T = TypeVar("T")
PICTURES = {"art_painting": 2_048, "cartoon": 2_344, "photo": 1_670, "sketch": 3_929}  # of PACS, as in Table 2


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
    tell: Count | None = None,
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
        cache: where decoded pictures are kept; by default ``$MEADA_CACHE``, else ``~/.cache/meada/images``.
        tell: called with the number of pictures decoded so far and in all.
    """
    check_range("domains", "[1, inf)", side=side, per_domain=1 if per_domain is None else per_domain)
    check_range("domains", "(0, 1)", held_out=held_out)
    check_range("domains", "[0, inf)", seed=seed)
    parts = _parts(folder, root, sources, targets, per_domain, held_out, seed)
    held = {file for of_one in parts.held_out for file, _ in of_one}
    both = (file for of_one in parts.train for file, _ in of_one if file in held)
    parts.tree.faults.extend(f"{file} is in the train list and in the crossval list" for file in both)
    joined, some = "+".join(parts.sources), "" if per_domain is None else f", {per_domain} of each"
    named = {f"train {joined}{some}": parts.train, f"crossval {joined}": parts.held_out}
    named |= {f"test {name}": [of_one] for name, of_one in zip(parts.targets, parts.test, strict=True)}
    samples = _load(parts.tree, named, side, cache, tell)
    return Task(
        classes=parts.tree.classes,
        train=samples[0],
        validation=samples[1],
        targets=dict(zip(parts.targets, samples[2:], strict=True)),
        sources=parts.sources,
        provenance=_provenance(parts, side),
    )


def domains_sizes(*, folder: str, side: int = 224, **settings: Any) -> Sizes:
    """Counted in the tree: files are listed, none is opened."""
    parts = _parts(folder, **{key: value for key, value in settings.items() if key not in ("cache", "tell")})
    tested = dict(zip(parts.targets, map(len, parts.test), strict=True))
    return Sizes(len(parts.tree.classes), sum(map(len, parts.train)), tested, len(parts.sources), side)


class Parts(NamedTuple):
    """The pictures of each source to train on and held out, and of each target."""

    tree: Tree
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    train: list[list[Entry]]
    held_out: list[list[Entry]]
    test: list[list[Entry]]


def _parts(
    folder: str, root: str | Path | None = None, sources: Sequence[str] = (), targets: Sequence[str] = (),
    per_domain: int | None = None, held_out: float = 0.1, seed: int = 0,
) -> Parts:  # fmt: skip
    tree = read_tree(Path(folder) if Path(folder).is_dir() else data_root(root) / folder)
    trained, tested = protocol(tree.domains, sources, targets)
    entries = lambda names, split: [part(tree, name, split, held_out=held_out, seed=seed) for name in names]
    kept = entries(trained, "crossval")
    fit = [spread(of_one, per_domain) for of_one in entries(trained, "train")]
    return Parts(tree, trained, tested, fit, kept, entries(tested, "test"))


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
    if both := [name for name in sources if name in targets]:
        raise MeadaError(f"a domain must be a source or a target, got '{both[0]}' as both")
    if not sources and not targets:
        raise MeadaError(f"sources or targets must be named, of {', '.join(known)}, got neither")
    trained = tuple(sources) or tuple(name for name in known if name not in targets)
    tested = tuple(targets) or tuple(name for name in known if name not in sources)
    if not trained or not tested:
        raise MeadaError(f"sources and targets must both have a domain, got all of {', '.join(known)} for one of them")
    return trained, tested


def _load(
    tree: Tree, parts: dict[str, list[list[Entry]]], side: int, cache: str | Path | None, tell: Count | None
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


def _provenance(parts: Parts, side: int) -> dict[str, str]:
    by = "the published lists" if parts.tree.lists else "a seeded draw by class"
    how = f"at {side}x{side} (Pillow, bilinear)"
    trained = {
        name: f"{len(fit):,} pictures to train on, {len(kept):,} held out, by {by}, {how}"
        for name, fit, kept in zip(parts.sources, parts.train, parts.held_out, strict=True)
    }
    tested = {
        name: f"{len(of_one):,} pictures to test on, {how}"
        for name, of_one in zip(parts.targets, parts.test, strict=True)
    }
    return {**trained, **tested}


def say(done: int, total: int) -> None:
    """On a terminal, one line that counts."""
    if sys.stderr.isatty() and (done % 50 == 0 or done == total):
        end = "\n" if done == total else ""
        print(f"\rdecoding pictures, once: {done:,} of {total:,}", end=end, file=sys.stderr)


def pacs(
    *, targets: Sequence[str] = (), sources: Sequence[str] = (), side: int = 224, per_domain: int | None = None,
    root: str | Path | None = None, cache: str | Path | None = None, tell: Count | None = None,
) -> Task:  # fmt: skip
    """Leave-one-domain-out with ``targets=["sketch"]``, single-source with ``sources=["photo"]``.

    By the published lists: ``train`` to train on and ``crossval`` to validate on, both of the sources; ``test``, which
    is the union of the two, of the targets alone. The arguments are those of :func:`meada.datasets.domains.domains`.
    """
    folder = data_root(root) / "pacs"
    for file in PACS.files:
        if not (where := data_root(root) / file.path).is_dir():
            raise MeadaError(f"{where} is missing; {advice(PACS, file)}")
    task = domains(
        folder=str(folder), targets=targets, sources=sources, side=side, per_domain=per_domain, cache=cache, tell=tell
    )
    counted = {
        name: f"{what}; {_there(folder, name):,} of the {PICTURES[name]:,} published are there"
        for name, what in task.provenance.items()
    }
    return replace(task, provenance=counted)


def pacs_sizes(
    *, targets: Sequence[str] = (), sources: Sequence[str] = (), side: int = 224, per_domain: int | None = None,
    **_: object,
) -> Sizes:  # fmt: skip
    """As published, a tenth of the sources held out."""
    trained, tested = protocol([*PICTURES], sources, targets)
    train = sum(min(per_domain or PICTURES[name], round(0.9 * PICTURES[name])) for name in trained)
    return Sizes(7, train, {name: PICTURES[name] for name in tested}, len(trained), side)


def count_pacs(root: Path) -> int:
    """Pictures that are there, of the 9,991 published ones."""
    return sum(_there(root / "pacs", name) for name in PICTURES)


def _there(folder: Path, name: str) -> int:
    return sum(path.is_file() for path in (folder / "images" / name).glob("*/*"))
