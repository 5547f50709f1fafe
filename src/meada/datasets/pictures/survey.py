"""Scan all pictures of a folder once: usable ones, copies, and reasons for leaving others out."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from meada.datasets.pictures.decode import large_ones_too, upright
from meada.datasets.pictures.image_cache import Listing, cache_root, digest, fingerprints, writable
from meada.datasets.pictures.listing import Listed, Picture, list_pictures
from meada.errors import MeadaError, some
from meada.files import write_json
from meada.machine.limits import picture_formats, read_text
from meada.machine.terminal import Count

T = TypeVar("T")
K = TypeVar("K")
FORMAT = "meada-survey/2"
MIN_CLASSES = 2  # classes that a classifier needs
SHAPE = (9, 8)  # pixels that the coarse hash compares, each with its right neighbour: 8 x 8 bits
MARGIN = 2  # levels that the right neighbour must be brighter by: noise in a flat area is not an edge
BITS = 64
NEAR = 2  # bits that may differ: a JPEG saved again at 3/4 of its size differs by 0 to 3
PLAIN = 6  # hashes with fewer bits set show too little to compare pictures by
BLOCK = 256  # rows compared at once: 256 x 50,000 distances take 50 MB


class Look(NamedTuple):
    """Cached facts about a picture that can be decoded."""

    width: int
    height: int
    content: str  # hash of the decoded pixels: the same for copies, whatever their name or format
    coarse: str  # difference hash in hexadecimal digits: nearly the same for pictures that look alike


def content_hash(image: Image.Image) -> str:
    """Hash of size and pixels."""
    return sha256(f"{image.size}".encode() + image.tobytes()).hexdigest()[:32]


def difference_hash(image: Image.Image) -> str:
    """Perceptual hash: signs of horizontal brightness differences on an 8 x 8 grid, as 16 hexadecimal digits.

    >>> difference_hash(Image.linear_gradient("L").rotate(90))
    'ffffffffffffffff'
    """
    grey = np.asarray(image.convert("L").resize(SHAPE, Image.Resampling.BILINEAR), np.int16)
    return np.packbits(grey[:, 1:] > grey[:, :-1] + MARGIN).tobytes().hex()


def near(these: Sequence[str], those: Sequence[str]) -> list[tuple[int, int]]:
    """(i, j) for each i whose nearest hash among ``those`` is j and differs in at most NEAR bits.

    >>> near(["ffff0000ffff0000", "0f0f0f0f0f0f0f0f"], ["0000000000000000", "ffff0000ffff0001"])
    [(0, 1)]
    """
    a, b = _signs(these), _signs(those)
    if not len(a) or not len(b):
        return []
    found = list[tuple[int, int]]()
    for start in range(0, len(a), BLOCK):
        agree = a[start : start + BLOCK] @ b.T  # bits that agree minus bits that differ
        best = agree.argmax(1)
        close = agree[np.arange(len(best)), best] >= BITS - 2 * NEAR
        found += [(start + int(i), int(best[i])) for i in np.flatnonzero(close)]
    return found


def _signs(hashes: Sequence[str]) -> NDArray[np.float32]:
    """+1 and -1 for bits set and not; 0 throughout for hashes that are too plain to compare."""
    packed = np.frombuffer(bytes.fromhex("".join(hashes)), np.uint8).reshape(-1, BITS // 8)
    bits = np.unpackbits(packed, axis=1)
    return (2 * bits.astype(np.float32) - 1) * (bits.sum(1, keepdims=True) >= PLAIN)


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Items by their key, in order of the first of each."""
    found: dict[K, list[T]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


@dataclass(frozen=True)
class Survey:
    root: Path
    pictures: tuple[Picture, ...]  # in order of domain, class and name; all of them can be decoded
    classes: tuple[str, ...]  # those that have a picture, in order of their names; the columns of a multi-label CSV
    domains: tuple[str, ...]
    side: int  # the shorter one of a typical picture, in pixels
    skipped: dict[str, str]  # file -> why it is left out
    remarks: tuple[str, ...]  # sentences about classes and copies
    looks: dict[str, Look]  # of each file of ``pictures``
    multilabel: bool = False  # a picture may show several of the classes, or none


def survey(path: Path, *, group: str = "", cache: str | Path | None = None, tell: Count | None = None) -> Survey:
    """Scan all files; results are cached until a file changes.

    ``path`` is CLASS/pictures, DOMAIN/CLASS/pictures or a CSV file of path,label; ``group`` as for
    :func:`meada.datasets.pictures.listing.list_pictures`.
    """
    listed = list_pictures(path, group)
    found = _looked_at(listed.root, listed.pictures, cache, tell)
    looks = {p.file: one for p in listed.pictures if isinstance(one := found[p.file], Look)}
    good = tuple(p for p in listed.pictures if p.file in looks)
    skipped = {file: why for file, why in found.items() if isinstance(why, str)}
    skipped |= listed.left_out
    classes = tuple(sorted({p.label for p in good}))
    if not classes:
        why = "; ".join(f"{name} {fault}" for name, fault in list(skipped.items())[:3])
        raise MeadaError(f"{path} must have readable pictures, got none ({why})")
    return Survey(
        root=listed.root,
        pictures=good,
        classes=listed.columns or classes,
        domains=tuple(dict.fromkeys(p.domain for p in good)),
        side=int(median(min(one.width, one.height) for one in looks.values())),
        skipped=dict(sorted(skipped.items())),
        remarks=(*_remarks(listed, good), *_about_copies(good, looks)),
        looks=looks,
        multilabel=bool(listed.columns),
    )


def summary(skipped: dict[str, str], shown: int = 5) -> str:
    """One sentence about the files left out.

    >>> summary({"a.jpg": "is broken", "b.txt": "is text"}, shown=1)
    '2 files are left out: a.jpg is broken; and 1 more'
    """
    count = "1 file is" if len(skipped) == 1 else f"{len(skipped):,} files are"
    return f"{count} left out: " + some((f"{name} {why}" for name, why in skipped.items()), shown, "; ")


def _remarks(listed: Listed, good: Sequence[Picture]) -> Iterator[str]:
    left = {p.label for p in listed.pictures} - {p.label for p in good}
    for name in listed.empty:
        yield f"class '{name}' is left out: its folder holds no picture"
    for name in sorted(left):
        yield f"class '{name}' is left out: none of its pictures can be read"


def _about_copies(good: Sequence[Picture], looks: dict[str, Look]) -> Iterator[str]:
    found = [files for files in grouped(looks, lambda file: looks[file].content).values() if len(files) > 1]
    if not found:
        return
    names = some((" = ".join(files[:2]) for files in found), between="; ")
    yield (
        f"{sum(map(len, found)) - len(found):,} of {len(looks):,} pictures are copies, pixel by pixel, of others "
        f"({names}): copies are all trained on or all held out"
    )
    label = {p.file: p.label for p in good}
    if differ := [files for files in found if len({label[file] for file in files}) > 1]:
        first, *_, last = sorted(differ[0], key=lambda file: label[file])
        yield (
            f"copies of {len(differ):,} of these pictures are in several classes, such as {first} in '{label[first]}' "
            f"and {last} in '{label[last]}'"
        )


def _looked_at(
    root: Path, listed: Sequence[Picture], cache: str | Path | None, tell: Count | None
) -> dict[str, Look | str]:
    """Decode each picture fully: its facts, or why it cannot be read."""
    there = [p.file for p in listed if (root / p.file).is_file()]
    files = Listing("survey", root, tuple(there))
    name = digest([FORMAT, str(root.resolve()), *fingerprints(files)])
    path = cache_root(cache) / f"survey-{name}.json"
    found = _remembered(path, there)
    if found is None:
        found = dict(zip(there, _look(root, there, tell), strict=True))
        with writable(path):
            write_json(path, found)
    return {p.file: "is not a file (perhaps a broken link)" for p in listed} | found


def _remembered(path: Path, files: Sequence[str]) -> dict[str, Look | str] | None:
    """Cached results of an earlier scan; None if missing or damaged."""
    try:
        seen = json.loads(read_text(path))
        return {file: one if isinstance(one := seen[file], str) else Look(*one) for file in files}
    except (MeadaError, ValueError, KeyError, TypeError):
        return None


def _look(root: Path, files: Sequence[str], tell: Count | None) -> list[Look | str]:
    def one(file: str) -> Look | str:
        try:
            pixels = upright(root / file, lenient=True)
            with Image.open(root / file, formats=picture_formats()) as image:
                return Look(*image.size, content_hash(pixels), difference_hash(pixels))
        except MeadaError as error:
            return str(error)

    found = []
    with large_ones_too(), ThreadPoolExecutor(os.cpu_count()) as pool:
        for done, each in enumerate(pool.map(one, files), 1):
            found.append(each)
            if tell:
                tell(done, len(files))
    return found
