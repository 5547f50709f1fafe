"""Refuse to resume a run whose pictures have changed: they may have moved between training and held-out."""

from collections.abc import Mapping
from pathlib import Path

from meada.datasets.folder import Division
from meada.datasets.pictures.image_cache import digest
from meada.datasets.pictures.listing import Picture
from meada.errors import MeadaError

DIGITS = 8  # hexadecimal digits kept per picture: 400 kB for 50,000 pictures

Hashes = dict[str, dict[str, str]]  # part of the data -> file -> hash


def hashes(divided: Division) -> Hashes:
    """Hash the path, the label, the group and the pixels of each picture; nothing is read again."""
    parts = {"data": (divided.own, divided.own.pictures), "data (held out)": (divided.own, divided.kept)}
    parts |= {f"test {name}": one for name, one in divided.tests.items()}
    return {name: {p.file: _hash(p, one.looks[p.file].content) for p in some} for name, (one, some) in parts.items()}


def _hash(p: Picture, content: str) -> str:
    return digest([p.file, p.label, p.group, str(p.labels), content])[:DIGITS]


def same_pictures(
    now: Hashes, held: Mapping[str, str], out: Path, advice: str = "give another --out to start again"
) -> None:
    """Compare with the hashes in the plan of ``out``, one after the other in a string for each part."""
    for name in {**now, **held}:
        files, text = now.get(name, {}), held.get(name, "")
        before = [text[k : k + DIGITS] for k in range(0, len(text), DIGITS)]
        if [*files.values()] != before:
            raise MeadaError(
                f"--{name} must hold the pictures that {out} was begun with, got {_difference(files, before)}: {advice}"
            )


def _difference(files: Mapping[str, str], before: list[str]) -> str:
    more = len(files) - len(before)
    if more:
        return f"{more:,} more" if more > 0 else f"{-more:,} fewer"
    return f"others (first: {next(file for (file, one), old in zip(files.items(), before, strict=True) if one != old)})"
