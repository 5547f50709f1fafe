"""Several domains in one tree of pictures: train on some of them, test on the others.

PACS (section 4.2), VLCS, OfficeHome or anybody's own ``DOMAIN/CLASS/*.jpg``, with or without lists of which pictures
are for training and which for tests.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

from meada.datasets.pictures.listing import Picture, folders_in, is_picture
from meada.datasets.pictures.parts import load, provenance, share, spread
from meada.datasets.published.catalogue import PACS, advice
from meada.datasets.task import Sizes, Task
from meada.errors import MeadaError, check_range, nearest
from meada.files import data_root
from meada.machine.limits import read_text
from meada.machine.terminal import Count

PICTURES = {"art_painting": 2_048, "cartoon": 2_344, "photo": 1_670, "sketch": 3_929}  # of PACS, as in Table 2

Split = Literal["train", "crossval", "test"]


def domains(
    *, folder: str, targets: Sequence[str] = (), sources: Sequence[str] = (), side: int = 224,
    per_domain: int | None = None, held_out: float = 0.1, seed: int = 0,
    root: str | Path | None = None, cache: str | Path | None = None, tell: Count | None = None,
) -> Task:  # fmt: skip
    """Train on ``sources``, test on ``targets``; either defaults to all domains not in the other.

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
    tree, sources, fit, kept, tests = _parts(folder, root, sources, targets, per_domain, held_out, seed)
    held = {p.file for p in kept}
    both = [f"{p.file} is in the train list and in the crossval list" for p in fit if p.file in held]
    joined, some = "+".join(sources), "" if per_domain is None else f", {per_domain} of each"
    named = {f"train {joined}{some}": fit, f"crossval {joined}": kept}
    named |= {f"test {name}": part for name, part in tests.items()}
    empty = [f"no picture is left for '{name}'" for name, part in named.items() if not part]
    samples = load(
        {name: (tree.pictures, part) for name, part in named.items()}, tree.classes, sources, side,
        cache=cache, tell=tell, faults=[*tree.faults, *both, *empty], lenient=False,
    )  # fmt: skip
    by = {"by": "the published lists"} if tree.lists else {}
    return Task(
        classes=tree.classes,
        train=samples[0],
        validation=samples[1],
        targets=dict(zip(tests, samples[2:], strict=True)),
        sources=sources,
        provenance=provenance(sources, fit, kept, tests, side, **by),
    )


def domains_sizes(*, folder: str, side: int = 224, **settings: Any) -> Sizes:
    """Sizes from listing the files, without opening any."""
    parts = _parts(folder, **{key: value for key, value in settings.items() if key not in ("cache", "tell")})
    tested = {name: len(part) for name, part in parts.tests.items()}
    return Sizes(len(parts.tree.classes), len(parts.fit), tested, len(parts.sources), side)


@dataclass(frozen=True)
class Tree:
    """Paths of the tree; ``faults`` collects errors of all parts, to raise them together."""

    pictures: Path  # the folder of the domains
    lists: Path | None  # the folder of DOMAIN_{train,crossval,test}_kfold.txt
    domains: tuple[str, ...]
    classes: tuple[str, ...]
    faults: list[str] = field(default_factory=list)


class Parts(NamedTuple):
    """Training and held-out pictures of all sources, and the pictures of each target."""

    tree: Tree
    sources: tuple[str, ...]
    fit: list[Picture]
    kept: list[Picture]
    tests: dict[str, list[Picture]]


def _parts(
    folder: str, root: str | Path | None = None, sources: Sequence[str] = (), targets: Sequence[str] = (),
    per_domain: int | None = None, held_out: float = 0.1, seed: int = 0,
) -> Parts:  # fmt: skip
    tree = _tree(Path(folder) if Path(folder).is_dir() else data_root(root) / folder)
    trained, tested = protocol(tree.domains, sources, targets)
    entries = lambda names, split: [_part(tree, name, split, held_out, seed) for name in names]
    kept = list(chain(*entries(trained, "crossval")))
    fit = list(chain(*(spread(of_one, per_domain) for of_one in entries(trained, "train"))))
    return Parts(tree, trained, fit, kept, dict(zip(tested, entries(tested, "test"), strict=True)))


def protocol(
    known: Sequence[str], sources: Sequence[str], targets: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Source and target domains; either defaults to all domains not in the other.

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


def _tree(folder: Path) -> Tree:
    """``folder`` holds the domains, or holds them in ``images`` next to ``splits``."""
    if not folder.is_dir():
        raise MeadaError(f"{folder} must be a folder DOMAIN/CLASS/*.jpg, got none")
    pictures = folder / "images" if (folder / "images").is_dir() else folder
    lists = folder / "splits" if (folder / "splits").is_dir() else None
    found = [domain for domain in folders_in(pictures) if domain != lists]
    classes = sorted({folder.name for domain in found for folder in folders_in(domain)})
    if not classes:
        raise MeadaError(f"{pictures} must hold DOMAIN/CLASS folders, got none")
    return Tree(pictures, lists, tuple(domain.name for domain in found), tuple(classes))


def _part(tree: Tree, domain: str, split: Split, held_out: float, seed: int) -> list[Picture]:
    """The pictures of one domain: for training, for validation, or all of them for the test.

    Out of the published lists where there are any; else ``held_out`` of each class is kept from
    training, drawn by ``seed``.
    """
    found = {name: _pictures(tree.pictures, domain, name) for name in tree.classes}
    tree.faults.extend(f"{domain}/{name} holds no picture" for name, some in found.items() if not some)
    if tree.lists is not None:
        known = {p.file for some in found.values() for p in some}
        path = tree.lists / f"{domain}_{split}_kfold.txt"
        entries = _listed(tree, path, domain, known)
        if split != "crossval" and entries:  # a few pictures to choose by may lack a rare class
            there = {p.label for p in entries}
            unnamed = [name for name, some in found.items() if some and name not in there]
            tree.faults.extend(f"{path.name} names no picture of {name}" for name in unnamed)
        return entries
    if split != "test":
        side = 1 if split == "crossval" else 0
        found = {name: share(some, held_out, f"{seed} {domain} {name}")[side] for name, some in found.items()}
    return list(chain(*found.values()))


def _pictures(folder: Path, domain: str, name: str) -> list[Picture]:
    if not (folder / domain / name).is_dir():
        return []
    files = sorted((folder / domain / name).iterdir())
    return [Picture(f"{domain}/{name}/{file.name}", name, domain) for file in files if is_picture(file)]


def _listed(tree: Tree, path: Path, domain: str, known: set[str]) -> list[Picture]:
    if not path.is_file():
        tree.faults.append(f"the list {path.name} is missing")
        return []
    entries, faults = read_list(path, tree.classes)
    strange = [p.file for p in entries if p.domain != domain]
    missing = [p.file for p in entries if p.domain == domain and p.file not in known]
    tree.faults.extend(faults)
    tree.faults.extend(f"{path.name} names {name}, which is not there" for name in missing)
    tree.faults.extend(f"{path.name} names {name} of another domain" for name in strange)
    return [p for p in entries if p.file in known]


def read_list(path: Path, classes: Sequence[str]) -> tuple[list[Picture], list[str]]:
    """Lines ``DOMAIN/CLASS/NAME LABEL``, and what is wrong with others.

    Labels are 1..K, in the order of the classes' names.
    """
    entries, faults = list[Picture](), list[str]()
    for number, line in enumerate(read_text(path).splitlines(), 1):
        name, _, label = line.strip().rpartition(" ")
        folders, at = name.split("/"), f"{path.name} line {number}"
        if not line.strip():
            continue
        if len(folders) != 3 or not label.isdecimal() or not 1 <= int(label) <= len(classes):
            must = f"must be DOMAIN/CLASS/NAME and a label from 1 to {len(classes)}"
            faults.append(f"{at} {must}, got '{line.strip()}'")
        elif classes[int(label) - 1] != folders[1]:
            faults.append(f"{at} labels {name} as {label}, which stands for {classes[int(label) - 1]}")
        else:
            entries.append(Picture(name, folders[1], folders[0]))
    return entries, faults


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
    """Published sizes, with a tenth of the sources held out."""
    trained, tested = protocol([*PICTURES], sources, targets)
    train = sum(min(per_domain or PICTURES[name], round(0.9 * PICTURES[name])) for name in trained)
    return Sizes(7, train, {name: PICTURES[name] for name in tested}, len(trained), side)


def count_pacs(root: Path) -> int:
    """Number of pictures found, of the 9,991 published ones."""
    return sum(_there(root / "pacs", name) for name in PICTURES)


def _there(folder: Path, name: str) -> int:
    return sum(path.is_file() for path in (folder / "images" / name).glob("*/*"))
