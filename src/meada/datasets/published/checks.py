"""Check which published data sets are present and whether their files are complete."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from meada.datasets.cifar import PUBLISHED as CIFAR
from meada.datasets.cifar import read as read_cifar
from meada.datasets.digits import READERS, read_mnist
from meada.datasets.domains import count_pacs
from meada.datasets.published import catalogue
from meada.datasets.published.catalogue import Domain, advice
from meada.errors import MeadaError

State = Literal["whole", "different", "unreadable", "incomplete", "absent"]
USABLE: tuple[State, ...] = ("whole", "different")


@dataclass(frozen=True)
class Report:
    """Result of reading all files of a domain."""

    name: str
    state: State
    note: str
    images: int | None = None
    md5: dict[str, str] | None = None  # path below the root -> checksum


def count_images(name: str, root: Path) -> int:
    """Read all files of the domain; return the number of labelled images."""
    if name == "mnist":  # the one domain of which training and test files are published alike
        return sum(len(read_mnist(root, split).labels) for split in ("train", "t10k"))
    if name == "pacs":  # counted, not decoded: a run decodes and names every fault
        return count_pacs(root)
    if name in CIFAR:
        home = root / CIFAR[name].folder
        return sum(len(read_cifar(CIFAR[name], home, split)) for split in ("train", "test"))
    return len(READERS[name](root).labels)


def examine(entry: Domain, root: Path) -> Report:
    """Whether the domain is there, readable and as published.

    Readable data whose checksum or number of images is not the published one is ``different``.
    """
    root = catalogue.home(entry, root)
    if missing := [file for file in entry.files if not catalogue.present(file, root)]:
        state: State = "absent" if len(missing) == len(entry.files) else "incomplete"
        note = f"{root / missing[0].path} is missing; {advice(entry, missing[0])}"
        return Report(entry.name, state, note)
    try:
        images = count_images(entry.name, root)
        sums = {file: catalogue.md5(root / file.path) for file in entry.files}
    except (MeadaError, OSError) as error:
        return Report(entry.name, "unreadable", str(error))
    wrong = [f for f in entry.files if f.md5 not in (None, sums[f])]
    notes = [f"{f.path} has md5 {sums[f]}, {catalogue.verdict(f, sums[f])}" for f in wrong]
    if images != entry.images:
        notes.insert(0, f"{entry.images:,} images are published")
    md5 = {file.path: found for file, found in sums.items()}
    trust = "readable all the same" if wrong else "checksums as published"
    if not all(file.md5 for file in entry.files):
        trust = "no checksum is published, so only the number of images can be compared"
    note = "; ".join([f"{images:,} images", *notes, trust])
    return Report(entry.name, "different" if notes else "whole", note, images, md5)
