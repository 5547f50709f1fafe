"""The data set ``folder``: split a folder into training and held-out pictures, and test on other folders."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import torch

from meada.datasets.domains import say, spread
from meada.datasets.pictures.image_cache import Listing, load_images
from meada.datasets.pictures.listing import Picture, list_pictures
from meada.datasets.pictures.split import alike, split, warnings
from meada.datasets.pictures.survey import FEWEST, Survey, summary, survey
from meada.datasets.task import Samples, Task
from meada.errors import MeadaError, check_range
from meada.machine.terminal import Count

Chosen = tuple[Survey, list[Picture]]  # a folder, and those of its pictures that are used


def folder(
    *,
    path: str,
    tests: Sequence[str] = (),
    side: int = 224,
    train: int | None = None,
    test: int | None = None,
    held_out: float = 0.2,
    seed: int = 0,
    group: str = "",
    multilabel: bool = False,
    cache: str | Path | None = None,
    tell: Count | None = None,
) -> Task:
    """Pictures from ``CLASS/*.jpg``, ``DOMAIN/CLASS/*.jpg`` or a CSV file of path,label.

    Files that cannot be decoded and classes without pictures are left out and listed in the
    provenance. Grey, CMYK, 16-bit and rotated pictures are supported (:func:`meada.datasets.pictures.decode.decode`).

    Args:
        path: the folder or the file.
        tests: other folders or files with the same classes, not used for training.
        side: width and height that every picture is resized to (bilinear).
        train: maximum number of training pictures, spread over classes and domains.
        test: maximum number of pictures per test, spread over its classes.
        held_out: share of each class of each domain that is held out from training.
        seed: seed of the split.
        group: a column of the CSV file, or a regular expression on the path whose first group names the
            object or patient that a picture shows. Pictures of one group, and exact copies, are never
            divided between training and held-out pictures.
        multilabel: also accept a CSV file of path and several columns of 0 and 1; labels are then (N, K).
        cache: folder for decoded pictures, as for ``domains``.
        tell: called with the number of pictures decoded so far and in total.
    """
    at_most = {name: 1 if n is None else n for name, n in (("train", train), ("test", test))}
    check_range("folder", "[1, inf)", side=side, **at_most)
    check_range("folder", "(0, 1)", held_out=held_out)
    check_range("folder", "[0, inf)", seed=seed)
    own = survey(Path(path), group=group, cache=cache, tell=tell)
    if own.multilabel and not multilabel:
        raise MeadaError(
            f"{path} must have one column 'label', got the label columns {', '.join(own.classes[:4])}: "
            "only meada robustify supports several labels per picture"
        )
    if len(own.classes) < FEWEST and not own.multilabel:
        raise MeadaError(f"{path} must have at least two classes, got one, '{own.classes[0]}'")
    whole, kept = split(own, held_out=held_out, seed=seed)
    fit = spread(whole, train)
    found = targets(tests, own, group=group, cache=cache, tell=tell)
    met = {name: (one, spread(part, test)) for name, (one, part) in found.items()}
    parts = {f"train {train or 'all'}": (own, fit), "held out": (own, kept)}
    parts |= {f"test {name} {test or 'all'}": part for name, part in met.items()}
    samples = _load(parts, own, side, cache, tell)
    return Task(
        classes=own.classes,
        train=samples[0],
        validation=samples[1],
        targets=dict(zip(met, samples[2:], strict=True)),
        sources=own.domains,
        multilabel=own.multilabel,
        provenance=_provenance(own, fit, kept, met, side) | _warnings(own, whole, kept, met),
    )


def targets(
    tests: Sequence[str], own: Survey, *, group: str = "", cache: str | Path | None = None, tell: Count | None = None
) -> dict[str, Chosen]:
    """Test folders by name; each domain of a folder is a test of its own."""
    found: dict[str, Chosen] = {}
    classes, learnt = own.classes, {look.content: file for file, look in own.looks.items()}
    for test in tests:
        one = survey(Path(test), group=_group_of(Path(test), group), cache=cache, tell=tell)
        if own.multilabel and one.classes != classes:
            theirs, ours = (", ".join(names[:4]) for names in (one.classes, classes))
            raise MeadaError(f"test '{test}' must have the label columns {ours}, got {theirs}")
        if both := [file for file, look in one.looks.items() if look.content in learnt]:
            raise MeadaError(
                f"test '{test}' must hold none of the pictures to train on, got {len(both):,} of the same pixels, "
                f"such as {both[0]}, a copy of {own.root / learnt[one.looks[both[0]].content]}"
            )
        for domain in one.domains:
            known = [p for p in one.pictures if p.domain == domain and (own.multilabel or p.label in classes)]
            if not known:
                theirs, ours = (", ".join(list(names)[:4]) for names in (one.classes, classes))
                raise MeadaError(f"test '{test}' must have some of the classes {ours}, got {theirs}")
            found[_free(domain, Path(test), {*found, *own.domains})] = (one, known)
    return found


def read_pictures(path: Path, classes: Sequence[str] | None, side: int) -> Samples:
    """All pictures of a folder whose class is in ``classes`` (default: all classes), in order."""
    found = survey(path)
    classes = found.classes if classes is None else classes
    known = [p for p in found.pictures if p.label in classes]
    if not known:
        theirs, ours = (", ".join(list(names)[:4]) for names in (found.classes, classes))
        raise MeadaError(f"{path} must have some of the classes {ours}, got {theirs}")
    listing = Listing("all", found.root, tuple(p.file for p in known))
    (images,) = load_images([listing], side, tell=say, lenient=True)
    labels = torch.tensor([list(classes).index(p.label) for p in known], dtype=torch.int64)
    return Samples(images, labels)


def _group_of(test: Path, group: str) -> str:
    """The group pattern if the test has such groups, else none."""
    with suppress(MeadaError):
        list_pictures(test, group)
        return group
    return ""


def _free(name: str, path: Path, taken: Collection[str]) -> str:
    """A name that is not taken: prefixed by the parent folder, or numbered."""
    full = f"{path.resolve().parent.name}-{name}"
    names = [name, full, *(f"{full}-{k}" for k in range(2, len(taken) + 3))]
    return next(one for one in names if one not in taken)


def _load(
    parts: Mapping[str, Chosen], own: Survey, side: int, cache: str | Path | None, tell: Count | None
) -> list[Samples]:
    listings = [Listing(name, of.root, tuple(p.file for p in chosen)) for name, (of, chosen) in parts.items()]
    images = load_images(listings, side, folder=cache, tell=tell or say, lenient=True)
    return [Samples(x, *_labels(chosen, own)) for x, (_, chosen) in zip(images, parts.values(), strict=True)]


def _labels(chosen: Sequence[Picture], own: Survey) -> tuple[torch.Tensor, torch.Tensor]:
    label = {name: k for k, name in enumerate(own.classes)}
    domain = {name: k for k, name in enumerate(own.domains)}
    if own.multilabel:
        labels = torch.tensor([p.labels for p in chosen], dtype=torch.float32)
    else:
        labels = torch.tensor([label[p.label] for p in chosen], dtype=torch.int64)
    return labels, torch.tensor([domain.get(p.domain, 0) for p in chosen], dtype=torch.int64)


def _provenance(
    own: Survey, fit: Sequence[Picture], kept: Sequence[Picture], met: Mapping[str, Chosen], side: int
) -> dict[str, str]:
    how = f"at {side}x{side} (Pillow, bilinear)"
    learnt, held = (Counter(p.domain for p in part) for part in (fit, kept))
    said = {
        name: f"{learnt[name]:,} pictures to train on, {held[name]:,} held out, by a seeded draw by class, {how}"
        for name in own.domains
    }
    said |= {name: f"{len(part):,} pictures to test on, {how}" for name, (_, part) in met.items()}
    left = {**own.skipped, **{k: v for one, _ in met.values() for k, v in one.skipped.items()}}
    unknown = [] if own.multilabel else sorted({p.label for s, _ in met.values() for p in s.pictures} - {*own.classes})
    notes = [summary(left)] if left else []
    notes += [*own.remarks, *(f"class '{name}' of a test folder is unknown" for name in unknown)]
    return said | ({"left out": "; ".join(notes)} if notes else {})


def _warnings(own: Survey, fit: list[Picture], kept: list[Picture], met: Mapping[str, Chosen]) -> dict[str, str]:
    notes = [*warnings(own, fit, kept)]
    groups = {p.group for p in own.pictures} - {""}
    for name, (one, part) in met.items():
        notes += alike(f"test '{name}'", one, part, own, [*fit, *kept])
        if shared := sorted(groups & {p.group for p in part}):
            notes.append(f"test '{name}' has {len(shared):,} groups of the data, such as '{shared[0]}'")
    return {"warnings": "; ".join(notes)} if notes else {}
