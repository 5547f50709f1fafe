"""The published data sets: their files, sizes, checksums and addresses, and where they are on disk."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from meada.errors import MeadaError, nearest
from meada.machine.limits import regular


@dataclass(frozen=True)
class File:
    """One published file or folder of images; ``None`` for facts that are not published."""

    path: str  # below the data root
    size: int | None = None  # bytes
    md5: str | None = None
    url: str | None = None  # a public address that serves it to anybody
    folder: bool = False

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class Domain:
    """One domain as it is published."""

    name: str
    about: str
    images: int
    files: tuple[File, ...]
    page: str  # where a person finds it, in words
    within: tuple[str, ...] = ("",)  # folders below the root that all of it may lie in


def domain(name: str) -> Domain:
    """The catalogue's entry, or an error with the nearest known name.

    >>> domain("svhn").images
    26032
    """
    if name not in CATALOGUE:
        raise MeadaError(f"unknown domain '{name}': {nearest(name, CATALOGUE)}")
    return CATALOGUE[name]


def fetchable(entry: Domain) -> bool:
    """Whether ``meada data get`` can download all of it."""
    return all(file.url is not None for file in entry.files)


def advice(entry: Domain, file: File) -> str:
    """End of an error message about a missing or damaged file: its published size and address.

    >>> advice(CATALOGUE["usps"], CATALOGUE["usps"].files[0])
    'published: usps.t.bz2, 1,831,726 bytes, md5 8ea070ee2aca1ac39742fdd1ef5ed118; get it with: meada data get usps'
    """
    kind = f"folder {file.name} of {entry.images:,} images" if file.folder else file.name
    size = f", {file.size:,} bytes" if file.size else ""
    md5 = f", md5 {file.md5}" if file.md5 else ""
    source = f"meada data get {entry.name}" if file.url else entry.page
    return f"published: {kind}{size}{md5}; get it {'with' if file.url else 'from'}: {source}"


_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist/"  # the mirror that stands in for LeCun's
_SVHN = "http://ufldl.stanford.edu/housenumbers"
_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass"
_GANIN = "http://yaroslav.ganin.net, the page of the authors of"
_KRIZ = "https://www.cs.toronto.edu/~kriz/cifar.html"


def _mnist(name: str, size: int, md5: str) -> File:
    return File(f"mnist/{name}", size, md5, _MNIST + name)


def _cifar(name: str, folder: str, files: dict[str, int]) -> Domain:
    """The archive unpacks to a folder of its own; no checksums of its files are published."""
    classes = name.removeprefix("cifar")
    about = f"photographs of {classes} classes, train and test, binary version"
    held = tuple(File(f"{folder}/{file}", size) for file, size in files.items())
    page = f"{_KRIZ} (cifar-{classes}-binary.tar.gz, unpacked in the data folder)"
    return Domain(name, about, 60_000, held, page, ("", name))


PACS = Domain(
    "pacs", "seven classes as art painting, cartoon, photo and sketch, with lists", 9_991,
    (File("pacs/images", folder=True), File("pacs/splits", folder=True)),
    "https://domaingeneralization.github.io, the page of the authors of PACS",
)  # fmt: skip
_DOMAINS = (
    Domain(
        "mnist", "handwritten digits, train and test", 70_000,
        (
            _mnist("train-images-idx3-ubyte.gz", 9_912_422, "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
            _mnist("train-labels-idx1-ubyte.gz", 28_881, "d53e105ee54ea40749a09fcbcd1e9432"),
            _mnist("t10k-images-idx3-ubyte.gz", 1_648_877, "9fb629c4189551a2d022fa330f9573f3"),
            _mnist("t10k-labels-idx1-ubyte.gz", 4_542, "ec29112dd5afa0611ce80d1b7f02629c"),
        ),
        "http://yann.lecun.com/exdb/mnist",
    ),
    Domain(
        "svhn", "house numbers in photographs, cropped, test", 26_032,
        (File("svhn/test_32x32.mat", 64_275_384, "eb5a983be6a315427106f1b164d9cef3", f"{_SVHN}/test_32x32.mat"),),
        _SVHN,
    ),
    Domain(
        "mnist_m", "MNIST digits blended into photographs, test", 9_001,
        (File("mnist_m/mnist_m_test_labels.txt"), File("mnist_m/mnist_m_test", folder=True)),
        f"{_GANIN} MNIST-M (the unpacked version, mnist_m.tar.gz)",
    ),
    Domain(
        "syn", "digits rendered in computer fonts, test", 9_553, (File("syn/synth_test_32x32.mat"),),
        f"{_GANIN} SYN (synthetic digits, SynthDigits.zip)",
    ),
    Domain(
        "usps", "handwritten digits from envelopes, test", 2_007,
        (File("usps/usps.t.bz2", 1_831_726, "8ea070ee2aca1ac39742fdd1ef5ed118", f"{_LIBSVM}/usps.t.bz2"),),
        f"{_LIBSVM}.html",
    ),
    PACS,
    _cifar(
        "cifar10", "cifar-10-batches-bin",
        dict.fromkeys([*(f"data_batch_{k}.bin" for k in range(1, 6)), "test_batch.bin"], 30_730_000),
    ),
    _cifar("cifar100", "cifar-100-binary", {"train.bin": 153_700_000, "test.bin": 30_740_000}),
)  # fmt: skip
CATALOGUE: dict[str, Domain] = {entry.name: entry for entry in _DOMAINS}
HEAD = 512  # bytes: enough to tell a page from data


def present(file: File, root: Path) -> bool:
    return (root / file.path).exists()


def home(entry: Domain, root: Path) -> Path:
    """The folder that the domain's paths start from: the first that holds any of them."""
    places = [root / name for name in entry.within]
    found = (place for place in places if any(present(file, place) for file in entry.files))
    return next(found, places[0])


def locate(file: File, root: Path) -> Path:
    """The path of ``file`` below ``root``; obviously wrong files are refused before reading."""
    path, wanted = root / file.path, "folder" if file.folder else "file"
    if not path.exists():
        problem = "is missing"
    elif path.is_dir() != file.folder:
        problem = f"must be a {wanted}, got a {'file' if file.folder else 'folder'}"
    elif file.folder:
        return path
    elif regular(path).stat().st_size == 0:
        problem = "is empty"
    else:
        with path.open("rb") as stream:
            if not looks_like_html(stream.read(HEAD)):
                return path
        problem = "is a web page, not data"
    raise MeadaError(f"{path} {problem}")


def looks_like_html(start: bytes) -> bool:
    """Whether the file is an HTML page, as dead links often leave on disk.

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
    """Result of a checksum test in words, for messages and records."""
    if file.md5 is None:
        return "no checksum is published"
    return "as published" if found == file.md5 else f"not the published {file.md5}"


def provenance(files: Iterable[File], root: Path) -> str:
    """Files and checksums that were read, for the record."""
    sums = {file: md5(root / file.path) for file in files}
    return "; ".join(f"{file.path} md5 {sums[file]} ({verdict(file, sums[file])})" for file in sums)
