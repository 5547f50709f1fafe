"""List the pictures of a folder or of a CSV file, each with its class, its domain and its group."""

import csv
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from meada.datasets.pictures.decode import ENDINGS
from meada.errors import MeadaError
from meada.machine.limits import read_text

LABEL = "label"  # the column of a CSV file with the class; without it, every column is a label of its own
NONE = "(none of them)"
NO_PICTURE = "has no ending of a picture"
MISPLACED = "is not directly in a folder of its class"


class Picture(NamedTuple):
    """A file below the listing's root, with its class and domain."""

    file: str
    label: str
    domain: str
    group: str = ""  # pictures of one group (an object, a patient) stay on one side of the split; "": alone
    labels: tuple[bool, ...] = ()  # where a picture has several labels: one for each of ``Listed.columns``


class Listed(NamedTuple):
    root: Path
    pictures: list[Picture]  # in order of domain, class and name
    left_out: dict[str, str]  # file -> why
    empty: list[str]  # classes without a picture
    columns: tuple[str, ...] = ()  # names of the labels, where a picture has several


def list_pictures(path: Path, group: str = "") -> Listed:
    """List pictures of CLASS/*, DOMAIN/CLASS/* or a CSV file of path,label, without opening them.

    ``group`` names a column of the CSV file, or is a regular expression on the path of each picture
    whose first group names the object that the picture shows.
    """
    if path.is_file() and path.suffix.lower() == ".csv":
        return _of_csv(path, group)
    if not path.is_dir():
        got = "another file" if path.exists() else "nothing there"
        raise MeadaError(f"{path} must be a folder CLASS/*.jpg (or DOMAIN/CLASS/*.jpg) or a .csv file, got {got}")
    found = _of_folder(path)
    # A model file holds one class per line, in UTF-8: what it cannot hold is refused before the training.
    for name in sorted({name for picture in found.pictures for name in (picture.label, picture.domain)}):
        if "\n" in name or "\r" in name or name != name.encode(errors="ignore").decode():
            raise MeadaError(f"{path} must have folders whose names are one line of UTF-8, got {name!r:.80}")
    return found._replace(pictures=grouped(found.pictures, group, path))


def grouped(pictures: list[Picture], pattern: str, path: Path) -> list[Picture]:
    """Set each picture's group to the match of the pattern's first group in its path."""
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
    if lost := [p.file for p, name in zip(pictures, names, strict=True) if not name]:
        raise MeadaError(
            f"group must be {columns}a regular expression that finds a name in the path of every picture, "
            f"got '{pattern}', which finds none in {len(lost):,} of {len(pictures):,}, such as {lost[0]}"
        )
    return [p._replace(group=name or "") for p, name in zip(pictures, names, strict=True)]


def _of_folder(path: Path) -> Listed:
    folders = folders_in(path)
    flat = any(is_picture(file) for folder in folders for file in folder.iterdir())
    tree = {"": folders} if flat else {folder.name: folders_in(folder) for folder in folders}
    pictures, left_out, empty = list[Picture](), dict[str, str](), set[str]()
    for domain, classes in tree.items():
        for folder in classes:
            files = sorted(f for f in folder.iterdir() if not f.is_dir() and f.name[0] != ".")  # broken links too
            names = [str(f.relative_to(path)) for f in files if f.suffix.lower() in ENDINGS]
            pictures += [Picture(name, folder.name, domain or path.name) for name in names]
            left_out |= {str(f.relative_to(path)): NO_PICTURE for f in files if f.suffix.lower() not in ENDINGS}
            empty |= set() if names else {folder.name}
    if not pictures and not left_out:
        loose = sum(map(is_picture, path.iterdir()))
        got = f"{loose:,} pictures outside of a folder of their class" if loose else "none"
        raise MeadaError(f"{path} must have pictures in folders CLASS/*.jpg or DOMAIN/CLASS/*.jpg, got {got}")
    listed = {p.file for p in pictures}
    everywhere = [str(f.relative_to(path)) for f in path.rglob("*") if is_picture(f)]
    hidden = lambda name: any(part.startswith(".") for part in Path(name).parts)
    left_out |= {name: MISPLACED for name in sorted(everywhere) if name not in listed and not hidden(name)}
    return Listed(path, pictures, left_out, sorted(empty - {p.label for p in pictures}))


def _of_csv(path: Path, group: str) -> Listed:
    """One column ``label``, or several columns of 0 and 1; paths are relative to the file's folder."""
    heading, rows = _read_csv(path)
    column = heading.index(group) if group in heading else None
    single = LABEL in heading
    columns = [] if single else [k for k in range(1, len(heading)) if k != column]
    label = heading.index(LABEL) if single else 0
    pictures = dict[str, Picture]()
    for row in rows:
        alone = row[label] if single else ""
        of_group = "" if column is None else row[column]
        picture = Picture(row[0], alone, path.stem, of_group, tuple(_yes(path, heading[k], row[k]) for k in columns))
        first = pictures.setdefault(row[0], picture)
        if first[1:] != picture[1:]:
            lines = f"on two lines that differ in {', '.join(heading[1:])}"
            how = f"as '{first.label}' and as '{alone}'" if first.label != alone else lines
            raise MeadaError(f"{path} must label a file once, got {row[0]} {how}")
    names = tuple(heading[k] for k in columns)
    listed = [*pictures.values()] if single else _by_rarest(pictures.values(), names)
    if missing := [p.file for p in listed if not (path.parent / p.file).is_file()]:
        hint = ": write / between folders, not \\" if "\\" in missing[0] else ""
        raise MeadaError(
            f"{path} must name files that are there, got {len(missing):,} of {len(listed):,} that are not, "
            f"such as {missing[0]}{hint}"
        )
    ordered = sorted(listed, key=lambda p: (p.label, p))
    return Listed(path.parent, grouped(ordered, "" if group in heading else group, path), {}, [], names)


def _yes(path: Path, name: str, cell: str) -> bool:
    if cell not in ("0", "1"):
        raise MeadaError(
            f"{path} must have 0 or 1 in the label column '{name}', got '{cell}': a column of classes is called 'label'"
        )
    return cell == "1"


def _by_rarest(pictures: Iterable[Picture], names: tuple[str, ...]) -> list[Picture]:
    """Use each picture's rarest label as its class in the split."""
    pictures = list(pictures)
    counts = [sum(p.labels[k] for p in pictures) for k in range(len(names))]

    def rarest(picture: Picture) -> str:
        own = [k for k, has in enumerate(picture.labels) if has]
        return names[min(own, key=lambda k: counts[k])] if own else NONE

    return [p._replace(label=rarest(p)) for p in pictures]


def _read_csv(path: Path) -> tuple[list[str], list[list[str]]]:
    """The header (optional for two columns) and the rows."""
    try:
        lines = read_text(path).splitlines()
        rows = [[cell.strip() for cell in row] for row in csv.reader(lines) if row]
    except csv.Error as error:
        raise MeadaError(f"{path} must be a CSV file of path,label, got {error}") from None
    first = [cell.lower() for cell in rows[0]] if rows else []
    headed = len(first) > 1 and first[0] == "path"
    if not headed and {"path", LABEL} & set(first) and not (path.parent / rows[0][0]).is_file():
        raise MeadaError(
            f"{path} must have 'path' as the first of several columns, got '{','.join(rows[0])}'{_commas(rows[0])}"
        )
    heading = [cell.lower() if cell.lower() == LABEL else cell for cell in rows[0]] if headed else ["path", LABEL]
    rows = rows[1:] if headed else rows
    must = [k for k, name in enumerate(heading) if k == 0 or name == LABEL]
    wrong = [row for row in rows if len(row) != len(heading) or not all(row[k] for k in must)]
    if wrong or not rows:
        got = f"'{','.join(wrong[0])}'{_commas(wrong[0])}" if wrong else "no line"
        raise MeadaError(f"{path} must have lines of {','.join(heading)}, got {got}")
    if len(set(heading)) < len(heading):
        raise MeadaError(f"{path} must have columns of different names, got {','.join(heading)}")
    return heading, rows


def _commas(row: list[str]) -> str:
    """A hint for a header with another separator."""
    return ": separate columns by commas" if len(row) == 1 and any(mark in row[0] for mark in ";\t|") else ""


def is_picture(file: Path) -> bool:
    return file.is_file() and file.suffix.lower() in ENDINGS and not file.name.startswith(".")


def folders_in(path: Path) -> list[Path]:
    return sorted(p for p in path.iterdir() if p.is_dir() and not p.name.startswith("."))
