"""Digits (section 4.1): train on 10,000 MNIST images, test on SVHN, MNIST-M, SYN and USPS."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from meada.datasets.published import catalogue, formats
from meada.datasets.published.catalogue import CATALOGUE, domain
from meada.datasets.published.formats import Raw
from meada.datasets.task import Samples, Sizes, Task, check
from meada.errors import MeadaError, check_range, nearest
from meada.files import data_root

T = TypeVar("T")
CLASSES = tuple("0123456789")
SIDE = 32  # pixels, all domains
TARGETS = ("svhn", "mnist_m", "syn", "usps")  # in the order of Table 1


def digits(
    *, root: str | Path | None = None, train: int = 10_000, validation: int = 5_000,
    targets: Sequence[str] = "available",
) -> Task:  # fmt: skip
    """The first ``train`` MNIST images to train on, the next ``validation`` held out.

    ``targets`` are names of domains, whole test splits each (``mnist`` is its own test split); a
    named one whose file is missing is an error. ``"available"`` takes those of SVHN, MNIST-M, SYN
    and USPS that are there, and notes the others as absent in the provenance.
    """
    folder = data_root(root)
    names = _targets(targets, folder)
    raw = read_mnist(folder, "train")
    check_range("digits", "[1, inf)", train=train, validation=validation)
    if train + validation > len(raw.labels):
        raise MeadaError(
            f"train = {train:,} and validation = {validation:,} images do not fit in "
            f"the {len(raw.labels):,} training images of mnist"
        )
    source = samples(Raw(raw.images[: train + validation], raw.labels[: train + validation]))
    return Task(
        classes=CLASSES,
        train=source[torch.arange(train)],
        validation=source[torch.arange(train, train + validation)],
        targets={name: load_domain(name, folder) for name in names},
        sources=("mnist",),
        provenance=_provenance(folder, names, train, validation),
    )


def digits_sizes(
    *, train: int = 10_000, targets: Sequence[str] = "available", root: str | Path | None = None, **_: object
) -> Sizes:
    """Published sizes; with no files yet, of the three targets that can be downloaded."""
    names = [name for name in TARGETS if _any_present(name, data_root(root))] or ["svhn", "mnist_m", "usps"]
    if targets != "available":
        names = [targets] if isinstance(targets, str) else list(targets)
    return Sizes(len(CLASSES), train, {name: domain(name).images for name in names}, side=SIDE)


def load_domain(name: str, root: str | Path | None = None) -> Samples:
    """The whole test split of one domain, as 32x32 RGB."""
    if name not in READERS:
        raise MeadaError(f"unknown domain '{name}': {nearest(name, READERS)}")
    read = samples(READERS[name](data_root(root)))
    check(name, read, len(CLASSES))
    return read


def read_mnist(root: Path, split: str = "t10k") -> Raw:
    """MNIST as published; ``split`` is ``train`` or ``t10k``, as in the files' names."""
    images, labels = (k for k, file in enumerate(CATALOGUE["mnist"].files) if file.name.startswith(split))
    pixels = _read("mnist", root, formats.read_idx_images, images)
    return _read("mnist", root, partial(formats.with_idx_labels, pixels), labels)


def read_mnist_m(root: Path) -> Raw:
    """MNIST-M's test images in the order of their list."""
    entries = _read("mnist_m", root, formats.read_png_list)
    return _read("mnist_m", root, partial(formats.read_pngs, entries), 1)


def _read(name: str, root: Path, read: Callable[[Path], T], number: int = 0) -> T:
    """Read one file of a domain; errors also say what the published file is."""
    entry, file = CATALOGUE[name], CATALOGUE[name].files[number]
    try:
        return read(catalogue.locate(file, root))
    except MeadaError as error:
        raise MeadaError(f"{error}; {catalogue.advice(entry, file)}") from error


# a domain's name -> its test split as published
READERS: dict[str, Callable[[Path], Raw]] = {
    "mnist": read_mnist,
    "svhn": lambda root: _read("svhn", root, formats.read_svhn),
    "mnist_m": read_mnist_m,
    "syn": lambda root: _read("syn", root, formats.read_svhn),
    "usps": lambda root: _read("usps", root, formats.read_libsvm),
}


def samples(raw: Raw) -> Samples:
    """Raw images as the network sees them: 32x32, three channels, 8 bits, not normalised."""
    if raw.images.ndim == 4:
        images = torch.from_numpy(raw.images)
    else:
        images = torch.from_numpy(resized(raw.images))[:, None].repeat(1, 3, 1, 1)
    return Samples(images, torch.from_numpy(raw.labels))


def resized(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Grey images at 32x32 by Pillow's bilinear filter, which the published experiments used.

    One image at a time: Pillow rounds to 8 bits between its two passes, so other libraries'
    bilinear filters differ in the last bit; 15,000 images take well under a second.
    """
    out = np.empty((len(images), SIDE, SIDE), np.uint8)
    for row, image in enumerate(images):
        wide = Image.fromarray(image).resize((SIDE, SIDE), Image.Resampling.BILINEAR)
        out[row] = np.asarray(wide)
    return out


def _targets(targets: str | Sequence[str], root: Path) -> list[str]:
    if targets == "available":
        there = [name for name in TARGETS if _any_present(name, root)]
        if not there:
            raise MeadaError(f"{root} must hold at least one of {', '.join(TARGETS)}, got none: see meada data list")
        return there
    names = [targets] if isinstance(targets, str) else list(targets)
    for name in names:
        if name not in READERS:
            raise MeadaError(f"unknown target '{name}': {nearest(name, [*READERS, 'available'])}")
    if not names:
        raise MeadaError(f"targets must name at least one of {', '.join(READERS)}, got none")
    return names


def _any_present(name: str, root: Path) -> bool:
    # one of several is enough: a domain that lacks a part is an error, not absent
    return any(catalogue.present(file, root) for file in CATALOGUE[name].files)


def _provenance(root: Path, names: list[str], train: int, validation: int) -> dict[str, str]:
    splits = {name: CATALOGUE[name].files for name in names}
    if "mnist" in splits:
        splits["mnist"] = splits["mnist"][2:]
    absent = {name: "absent, not tested on" for name in TARGETS if not _any_present(name, root)}
    tested = {name: catalogue.provenance(files, root) for name, files in splits.items()}
    source = (
        f"images 1 to {train:,} to train on, the next {validation:,} held out, of "
        f"{catalogue.provenance(CATALOGUE['mnist'].files[:2], root)}"
    )
    if "mnist" in tested:
        source += f"; tested on {tested['mnist']}"
    return {**tested, **absent, "mnist": source}
