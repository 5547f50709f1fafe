"""Hold out a share of the pictures per class and domain, without dividing copies or groups."""

from collections import Counter
from collections.abc import Iterator, Sequence

import torch

from meada.datasets.pictures.listing import Picture
from meada.datasets.pictures.parts import share
from meada.datasets.pictures.survey import Survey, grouped, near
from meada.errors import MeadaError
from meada.streams import stream

Cell = tuple[str, str]  # domain and class
Unit = list[Picture]  # pictures that stay on one side


def split(own: Survey, *, held_out: float, seed: int) -> tuple[list[Picture], list[Picture]]:
    """Training and held-out pictures; no copies or groups are on both sides."""
    found = units(own)
    if len(found) < 2:
        why = "copies of one picture" if len({one.content for one in own.looks.values()}) == 1 else "of one group"
        raise MeadaError(f"{own.root} must hold pictures that differ, got {len(own.pictures):,} {why}")
    _refuse_single(own)
    alone = all(len(unit) == 1 for unit in found)
    kept = _one_by_one(own, held_out, seed) if alone else _whole_units(found, held_out, seed)
    if not kept:
        raise MeadaError(
            f"{own.root} must have two pictures of a class in one domain that belong to different groups, one to train "
            "on and one to hold out, got none"
        )
    ordered = [p for cell in _cells(own).values() for p in cell]
    return [p for p in ordered if p.file not in kept], [p for p in ordered if p.file in kept]


def _refuse_single(own: Survey) -> None:
    """Refuse a class with fewer than two different pictures: one to train on and one to hold out."""
    classes = grouped(own.pictures, lambda p: p.label)
    single = [name for name, found in classes.items() if len({own.looks[p.file].content for p in found}) < 2]
    if single and not own.multilabel:
        more = f" (and {len(single) - 1:,} more classes like it)" if len(single) > 1 else ""
        raise MeadaError(
            f"each class of {own.root} must have two pictures that differ, one to train on and one to hold out, "
            f"got one of '{single[0]}'{more}"
        )


def units(own: Survey) -> list[Unit]:
    """Sets of pictures connected by equal pixels or a common group."""
    files = [p.file for p in own.pictures]
    copies = grouped(files, lambda file: own.looks[file].content).values()
    named = grouped((p for p in own.pictures if p.group), lambda p: p.group).values()
    root = {file: file for file in files}

    def find(file: str) -> str:
        while root[file] != file:
            root[file] = file = root[root[file]]
        return file

    for first, *others in [*copies, *([p.file for p in group] for group in named)]:
        for other in others:
            root[find(other)] = find(first)
    return [*grouped(own.pictures, lambda p: find(p.file)).values()]


def _cells(own: Survey) -> dict[Cell, list[Picture]]:
    """Pictures by domain and class, in order of first occurrence."""
    return grouped(own.pictures, lambda p: (p.domain, p.label))


def _one_by_one(own: Survey, held_out: float, seed: int) -> set[str]:
    """Split each cell separately."""
    files = {cell: [p.file for p in pictures] for cell, pictures in _cells(own).items()}
    drawn = (share(some, held_out, f"{seed} {cell[0]} {cell[1]}")[1] for cell, some in files.items())
    return {file for some in drawn for file in some}


def _whole_units(found: Sequence[Unit], held_out: float, seed: int) -> set[str]:
    """Go through units in random order and hold out a unit if its cells still need more than half of it.

    Every cell keeps a picture to train on. A cell that got nothing then gives its smallest unit.
    """
    order = torch.randperm(len(found), generator=stream("split units", str(seed))).tolist()
    inside = [Counter((p.domain, p.label) for p in unit) for unit in found]
    left = sum(inside, Counter[Cell]())
    wanted = {cell: max(round(held_out * n), 1) if n > 1 else 0 for cell, n in left.items()}
    kept = set[int]()

    def spare(unit: int) -> bool:
        return unit not in kept and all(left[cell] > n for cell, n in inside[unit].items())

    def keep(unit: int) -> None:
        kept.add(unit)
        for cell, n in inside[unit].items():
            left[cell] -= n
            wanted[cell] -= n

    for unit in order:
        useful = sum(min(n, max(wanted[cell], 0)) for cell, n in inside[unit].items())
        if 2 * useful > len(found[unit]) and spare(unit):
            keep(unit)
    total = sum(inside, Counter[Cell]())
    for cell in total:
        if left[cell] == total[cell] and (free := [u for u in order if cell in inside[u] and spare(u)]):
            keep(min(free, key=lambda u: len(found[u])))
    return {p.file for unit in kept for p in found[unit]}


def warnings(own: Survey, fit: Sequence[Picture], kept: Sequence[Picture]) -> Iterator[str]:
    """Warnings about a biased held-out score and about labels that cannot be learned."""
    if constant := constants(own):
        yield f"labels must differ between pictures, got {' and '.join(constant[:3])} for all of them"
    if missing := sorted(set(own.classes) - shown(own, kept)):
        yield f"{len(missing)} classes have no held-out picture, such as '{missing[0]}'"
    yield from alike("held-out", own, kept, own, fit)


def constants(own: Survey) -> list[str]:
    """Multi-label: the labels that every picture or none has, as ``'name' = 1``."""
    columns = zip(own.classes, zip(*(p.labels for p in own.pictures), strict=True), strict=False)  # one label: none
    return [f"'{name}' = {int(values[0])}" for name, values in columns if len(set(values)) == 1]


def shown(own: Survey, pictures: Sequence[Picture]) -> set[str]:
    """Classes that have a picture among ``pictures``."""
    if not own.multilabel:
        return {p.label for p in pictures}
    return {name for k, name in enumerate(own.classes) if any(p.labels[k] for p in pictures)}


def alike(name: str, survey: Survey, these: Sequence[Picture], own: Survey, fit: Sequence[Picture]) -> Iterator[str]:
    """Warn about held-out pictures that look like a training picture of the same class."""
    found = list[tuple[Picture, Picture]]()
    candidates = grouped(fit, lambda p: p.label)
    for label, mine in grouped(these, lambda p: p.label).items():
        others = candidates.get(label, [])
        hashes = [survey.looks[p.file].coarse for p in mine], [own.looks[p.file].coarse for p in others]
        found += [(mine[i], others[j]) for i, j in near(*hashes)]
    if found:
        yield (
            f"{len(found):,} of {len(these):,} {name} pictures look nearly the same as one to train on, such as "
            f"{found[0][0].file} and {found[0][1].file}: if they show one object, name it with group"
        )
