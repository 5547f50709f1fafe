"""Locate published files on disk and compute their checksums."""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from meada.datasets.published.catalogue import Domain, File, advice
from meada.errors import MeadaError
from meada.machine.limits import regular

HEAD = 512  # bytes: enough to tell a page from data


def present(file: File, root: Path) -> bool:
    return (root / file.path).exists()


def home(entry: Domain, root: Path) -> Path:
    """The folder that the domain's paths start from: the first that holds any of them."""
    places = [root / name for name in entry.within]
    found = (place for place in places if any(present(file, place) for file in entry.files))
    return next(found, places[0])


def locate(file: File, root: Path) -> Path:
    """The path of ``file`` below ``root``; what cannot be it is refused before it is read."""
    path, wanted = root / file.path, "folder" if file.folder else "file"
    if not path.exists():
        problem = "is missing"
    elif path.is_dir() != file.folder:
        problem = f"is a {'file' if file.folder else 'folder'}, where a {wanted} is meant"
    elif file.folder:
        return path
    elif regular(path).stat().st_size == 0:
        problem = "is empty"
    elif looks_like_html(head(path)):
        problem = "is a web page, not data"
    else:
        return path
    raise MeadaError(f"{path} {problem}")


@contextmanager
def advised(entry: Domain, file: File) -> Iterator[None]:
    """Whatever is found wrong inside is said together with what is published."""
    try:
        yield
    except MeadaError as error:
        raise MeadaError(f"{error}; {advice(entry, file)}") from error


def head(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(HEAD)


def looks_like_html(start: bytes) -> bool:
    """Log-in pages and "not found" pages are what a dead link most often leaves on disk.

    >>> looks_like_html(b"  <!DOCTYPE html><html>"), looks_like_html(b"BZh91AY")
    (True, False)
    """
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    return text.startswith((b"<!doctype html", b"<html", b"<head", b"<?xml", b"<!--"))


def md5(path: Path) -> str:
    """Checksum of a file's bytes; of a folder, of its files' bytes in the order of their names."""
    digest = hashlib.md5(usedforsecurity=False)
    for piece in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if piece.is_dir():
            continue
        with piece.open("rb") as stream:
            while chunk := stream.read(1 << 20):
                digest.update(chunk)
    return digest.hexdigest()


def verdict(file: File, found: str) -> str:
    """What a checksum says, for people and for records."""
    if file.md5 is None:
        return "no checksum is published"
    return "as published" if found == file.md5 else f"not the published {file.md5}"


def provenance(files: Iterable[File], root: Path) -> str:
    """What was read, so that a record says which bytes its numbers come from."""
    sums = {file: md5(root / file.path) for file in files}
    return "; ".join(f"{file.path} md5 {sums[file]} ({verdict(file, sums[file])})" for file in sums)
