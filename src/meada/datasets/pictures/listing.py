"""List the pictures of a folder or of a CSV file, each with its class, its domain and its group."""

import csv
import re
from pathlib import Path
from typing import NamedTuple

from meada.datasets.pictures.decode import ENDINGS
from meada.errors import MeadaError


class Picture(NamedTuple):
    """A file below the listing's root, with its class and domain."""

    file: str
    label: str
    domain: str
    group: str = ""  # pictures of one group (an object, a patient) stay on one side of the split; "": alone


class Listed(NamedTuple):
    root: Path
    pictures: list[Picture]  # in order of domain, class and name
    strange: list[str]  # files that have no ending of a picture
    empty: list[str]  # classes without a picture


def list_pictures(path: Path, group: str = "") -> Listed:
    """Pictures of CLASS/*, of DOMAIN/CLASS/* or of a CSV file of path,label, by their names alone.

    ``group`` names a column of the CSV file, or is a regular expression on the path of each picture
    whose first group names the object that the picture shows.
    """
    if path.is_file() and path.suffix.lower() == ".csv":
        heading, rows = _read_csv(path)
        column = heading.index(group) if group in heading else None
        pictures = _of_rows(path, rows, column)
        found = Listed(path.parent, pictures, [], [])
        return found if column is not None else found._replace(pictures=grouped(pictures, group, path))
    if not path.is_dir():
        raise MeadaError(f"{path} is neither a folder CLASS/*.jpg (or DOMAIN/CLASS/*.jpg) nor a .csv file")
    found = _of_folder(path)
    return found._replace(pictures=grouped(found.pictures, group, path))


def grouped(pictures: list[Picture], pattern: str, path: Path) -> list[Picture]:
    """Each picture with what the pattern's first group finds in its path."""
    if not pattern:
        return pictures
    columns = "a column of the CSV file or " if path.suffix.lower() == ".csv" else ""
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise MeadaError(f"group must be {columns}a regular expression, got '{pattern}' ({error})") from None
    if not compiled.groups:
        raise MeadaError(f"group must be {columns}a regular expression with a group (...), got '{pattern}'")
    names = [(found := compiled.search(p.file)) and found[1] for p in pictures]
    lost = [p.file for p, name in zip(pictures, names, strict=True) if not name]
    if lost:
        raise MeadaError(
            f"group must be {columns}a regular expression that finds a name in the path of every picture, "
            f"got '{pattern}', which finds none in {len(lost):,} of {len(pictures):,}, such as {lost[0]}"
        )
    return [p._replace(group=name or "") for p, name in zip(pictures, names, strict=True)]


def _of_folder(path: Path) -> Listed:
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
    return Listed(path, pictures, strange, sorted(empty - {p.label for p in pictures}))


def _read_csv(path: Path) -> tuple[list[str], list[list[str]]]:
    """The heading, which may be missing where there are two columns, and the lines below it."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
        rows = [[cell.strip() for cell in row] for row in csv.reader(lines) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise MeadaError(f"{path} is no CSV file of path,label: {error}") from None
    headed = bool(rows) and [cell.lower() for cell in rows[0][:2]] == ["path", "label"]
    heading = rows[0] if headed else ["path", "label"]
    rows = rows[1:] if headed else rows
    wrong = [row for row in rows if len(row) != len(heading) or not all(row[:2])]
    if wrong or not rows:
        found = f"a line is '{','.join(wrong[0])}'" if wrong else "it is empty"
        raise MeadaError(f"{path}: {found}, where each line is {','.join(heading)}")
    return heading, rows


def _of_rows(path: Path, rows: list[list[str]], column: int | None) -> list[Picture]:
    """Paths are relative to the file's folder."""
    cells = dict.fromkeys((row[0], row[1], "" if column is None else row[column]) for row in rows)
    labels = dict[str, str]()
    for file, label, _ in cells:
        if labels.setdefault(file, label) != label:
            raise MeadaError(f"{path} labels {file} as '{labels[file]}' and as '{label}'")
    return sorted((Picture(f, name, path.stem, group) for f, name, group in cells), key=lambda p: (p.label, p))


def _is_picture(file: Path) -> bool:
    return file.is_file() and file.suffix.lower() in ENDINGS and not file.name.startswith(".")


def _folders(path: Path) -> list[Path]:
    return sorted(p for p in path.iterdir() if p.is_dir() and not p.name.startswith("."))
