"""What lies in somebody's folder of pictures: which can be used, as what, and why others cannot."""

import csv
import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

from PIL import Image

from meada.datasets.pictures.decode import ENDINGS, decode, large_ones_too
from meada.datasets.pictures.image_cache import Listing, Tell, cache_root, digest, fingerprints
from meada.errors import MeadaError
from meada.files import write_json

FORMAT = "meada-survey/1"
FEWEST = 2  # classes that a classifier needs


class Picture(NamedTuple):
    """A file below the survey's root, with its class and domain."""

    file: str
    label: str
    domain: str


@dataclass(frozen=True)
class Survey:
    root: Path
    pictures: tuple[Picture, ...]  # in order of domain, class and name; all of them can be decoded
    classes: tuple[str, ...]  # those that have a picture, in order of their names
    domains: tuple[str, ...]
    side: int  # the shorter one of a typical picture, in pixels
    skipped: dict[str, str]  # file -> why it is left out
    remarks: tuple[str, ...]  # sentences about classes


def survey(path: Path, *, cache: str | Path | None = None, tell: Tell | None = None) -> Survey:
    """Look at every file once; what was found is remembered until a file changes.

    ``path`` is CLASS/pictures, DOMAIN/CLASS/pictures or a CSV file of path,label.
    """
    root, listed, strange, empty = _listed(path)
    looked = _looked_at(root, listed, cache, tell)
    good = tuple(p for p in listed if isinstance(looked[p.file], list))
    skipped = {p.file: str(looked[p.file]) for p in listed if isinstance(looked[p.file], str)}
    skipped |= dict.fromkeys(strange, "has no ending of a picture")
    classes = tuple(sorted({p.label for p in good}))
    if not classes:
        why = "; ".join(f"{name} {fault}" for name, fault in list(skipped.items())[:3])
        raise MeadaError(f"{path} holds no picture that can be used ({why or 'it is empty'})")
    return Survey(
        root=root,
        pictures=good,
        classes=classes,
        domains=tuple(dict.fromkeys(p.domain for p in good)),
        side=int(median(min(looked[p.file]) for p in good)),  # type: ignore[type-var]
        skipped=dict(sorted(skipped.items())),
        remarks=tuple(_remarks(listed, good, empty)),
    )


def summary(skipped: dict[str, str], shown: int = 5) -> str:
    """One sentence about the files that are left out.

    >>> summary({"a.jpg": "is broken", "b.txt": "is text"}, shown=1)
    '2 files are left out: a.jpg is broken; and 1 more'
    """
    some = "; ".join(f"{name} {why}" for name, why in list(skipped.items())[:shown])
    more = f"; and {len(skipped) - shown:,} more" if len(skipped) > shown else ""
    count = "1 file is" if len(skipped) == 1 else f"{len(skipped):,} files are"
    return f"{count} left out: {some}{more}"


def _remarks(listed: Sequence[Picture], good: Sequence[Picture], empty: Sequence[str]) -> Iterator[str]:
    left = {p.label for p in listed} - {p.label for p in good}
    for name in empty:
        yield f"class '{name}' is left out: its folder holds no picture"
    for name in sorted(left):
        yield f"class '{name}' is left out: none of its pictures can be read"
    counts = {p.label: sum(q.label == p.label for q in good) for p in good}
    for name in sorted(name for name, n in counts.items() if n == 1):
        yield f"class '{name}' has one picture: it is learnt from, and none is held out"


def _listed(path: Path) -> tuple[Path, list[Picture], list[str], list[str]]:
    """Root, pictures by their names, files that are none, and classes without a file."""
    if path.is_file() and path.suffix.lower() == ".csv":
        return path.parent, _read_csv(path), [], []
    if not path.is_dir():
        raise MeadaError(f"{path} is neither a folder CLASS/*.jpg (or DOMAIN/CLASS/*.jpg) nor a .csv file")
    folders = _folders(path)
    flat = any(_is_picture(file) for folder in folders for file in folder.iterdir())
    tree = {"": folders} if flat else {folder.name: _folders(folder) for folder in folders}
    pictures, strange, empty = list[Picture](), list[str](), set[str]()
    for domain, classes in tree.items():
        for folder in classes:
            files = sorted(f for f in folder.iterdir() if f.is_file() and f.name[0] != ".")
            names = [str(f.relative_to(path)) for f in files if _is_picture(f)]
            pictures += [Picture(name, folder.name, domain or path.name) for name in names]
            strange += [str(f.relative_to(path)) for f in files if not _is_picture(f)]
            empty |= set() if names else {folder.name}
    if not any(tree.values()):
        raise MeadaError(f"{path} holds no CLASS folders: pictures lie in a folder of their class")
    return path, pictures, strange, sorted(empty - {p.label for p in pictures})


def _read_csv(path: Path) -> list[Picture]:
    """Lines ``path,label``, with or without a heading; paths are relative to the file's folder."""
    try:
        rows = [row for row in csv.reader(path.read_text(encoding="utf-8-sig").splitlines()) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise MeadaError(f"{path} is no CSV file of path,label: {error}") from None
    if rows and [cell.strip().lower() for cell in rows[0][:2]] == ["path", "label"]:
        rows = rows[1:]
    wrong = [row for row in rows if len(row) != 2 or not all(cell.strip() for cell in row)]
    if wrong or not rows:
        found = f"a line is '{','.join(wrong[0])}'" if wrong else "it is empty"
        raise MeadaError(f"{path}: {found}, where each line is path,label")
    cells = dict.fromkeys((file.strip(), label.strip()) for file, label in rows)
    labels = dict[str, str]()
    for file, label in cells:
        if labels.setdefault(file, label) != label:
            raise MeadaError(f"{path} labels {file} as '{labels[file]}' and as '{label}'")
    return sorted((Picture(f, name, path.stem) for f, name in cells), key=lambda p: (p.label, p))


def _looked_at(
    root: Path, listed: Sequence[Picture], cache: str | Path | None, tell: Tell | None
) -> dict[str, list[int] | str]:
    """Width and height of each picture, or why it cannot be read: each is decoded to its end."""
    there = [p.file for p in listed if (root / p.file).is_file()]
    files = Listing("survey", root, tuple(there))
    name = digest([FORMAT, str(root.resolve()), *fingerprints(files)])
    path = cache_root(cache) / f"survey-{name}.json"
    if not path.exists():
        write_json(path, dict(zip(there, _look(root, there, tell), strict=True)))
    looked: dict[str, list[int] | str] = json.loads(path.read_text(encoding="utf-8"))
    return {p.file: "is not there" for p in listed} | looked


def _look(root: Path, files: Sequence[str], tell: Tell | None) -> list[list[int] | str]:
    def one(file: str) -> list[int] | str:
        try:
            decode(root / file, 8, lenient=True)
            with Image.open(root / file) as image:
                return list(image.size)
        except MeadaError as error:
            return str(error)

    found = []
    with large_ones_too(), ThreadPoolExecutor(os.cpu_count()) as pool:
        for done, each in enumerate(pool.map(one, files), 1):
            found.append(each)
            if tell:
                tell(done, len(files))
    return found


def _is_picture(file: Path) -> bool:
    return file.is_file() and file.suffix.lower() in ENDINGS and not file.name.startswith(".")


def _folders(path: Path) -> list[Path]:
    return sorted(p for p in path.iterdir() if p.is_dir() and not p.name.startswith("."))
