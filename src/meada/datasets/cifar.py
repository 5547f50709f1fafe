"""CIFAR (section 4.3): train on clean photographs, test on fifteen corruptions of the test split."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from meada.corruptions import CORRUPTIONS, SEVERITIES
from meada.corruptions.sources import Stack
from meada.datasets import cifar_c
from meada.datasets.published import catalogue
from meada.datasets.task import Samples, Sizes, Task, check
from meada.errors import MeadaError
from meada.files import data_root
from meada.machine.limits import read_text, regular
from meada.streams import stream

SIDE, PIXELS = 32, 3 * 32 * 32
TEN = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
HUNDRED = tuple(f"class {k}" for k in range(100))  # where the file of names is missing
BATCHES = tuple(f"data_batch_{k}.bin" for k in range(1, 6))


@dataclass(frozen=True)
class Published:
    """The published binary version of one data set: its folder and the files in it."""

    name: str
    classes: tuple[str, ...]
    folder: str
    train: tuple[str, ...]
    test: tuple[str, ...]
    label_bytes: int  # before each image; the last one is the class


CIFAR10 = Published("cifar10", TEN, "cifar-10-batches-bin", BATCHES, ("test_batch.bin",), label_bytes=1)
# two label bytes: the coarse class, then the fine one
CIFAR100 = Published("cifar100", HUNDRED, "cifar-100-binary", ("train.bin",), ("test.bin",), label_bytes=2)
PUBLISHED = {one.name: one for one in (CIFAR10, CIFAR100)}


def cifar(
    published: Published, *, root: str | Path | None = None, train: int = 48_000, validation: int = 2_000,
    test: int = 10_000, split_seed: int = 0, corrupted: str = "auto",
) -> Task:  # fmt: skip
    """The training split to train on, less a held-out part; the corrupted test split to test on.

    Args:
        train: images to train on. The paper trains on all 50,000 and chooses on the test set.
        validation: images of the training split held out, to choose checkpoints by.
        test: images of the test split, the first ones: clean, and under each corruption and severity.
        split_seed: which images are held out; the same for every run unless it is changed.
        corrupted: ``official`` (published files), ``generated`` (made from the test split, once),
            ``auto`` (the published ones where they are there), or a folder of either.
    """
    folder = data_root(root)
    home = find(published, folder)
    whole, clean = read(published, home, "train"), read(published, home, "test")
    if train < 1 or validation < 1 or train + validation > len(whole):
        raise MeadaError(
            f"train and validation must be 1 or more, and together at most the {len(whole):,} training images of "
            f"{published.name}, got {train:,} and {validation:,}"
        )
    if not 1 <= test <= len(clean):
        raise MeadaError(f"test must be from 1 to the {len(clean):,} test images of {published.name}, got {test:,}")
    order = torch.randperm(len(whole), generator=stream(split_seed, "held out", published.name))
    name = f"CIFAR-{len(published.classes)}-C"  # the published folder of its corruptions
    targets, made = cifar_c.open_set(name, folder, clean, test, corrupted)
    return Task(
        classes=_classes(published, home),
        train=whole[order[validation : validation + train].sort().values],
        validation=whole[order[:validation].sort().values],
        targets=targets,
        sources=(published.name,),
        provenance={
            published.name: f"{train:,} images to train on and {validation:,} held out, drawn by seed {split_seed} of "
            f"the training split; {home.name} md5 {catalogue.md5(home)}",
            **made,
        },
        clean=clean.first(test),
        severities=len(SEVERITIES),
        crafted="corruptions",
    )


cifar10: Callable[..., Task] = partial(cifar, CIFAR10)
cifar100: Callable[..., Task] = partial(cifar, CIFAR100)


def cifar_sizes(published: Published, *, train: int = 48_000, test: int = 10_000, **_: object) -> Sizes:
    """Every target holds all severities."""
    targets = dict.fromkeys(CORRUPTIONS, len(SEVERITIES) * test)
    return Sizes(len(published.classes), train, targets, side=SIDE)


def find(published: Published, root: Path) -> Path:
    """The folder of the binary version, in ``root`` or in its subfolder with the data set's name."""
    folder = catalogue.home(catalogue.CATALOGUE[published.name], root) / published.folder
    if folder.is_dir():
        return folder
    raise MeadaError(
        f"{root} must hold the folder {published.folder}, got none: unpack the binary version of {published.name} "
        "(www.cs.toronto.edu/~kriz/cifar.html; the python version holds pickles, which are not read) there"
    )


def read(published: Published, home: Path, split: str) -> Samples:
    """One split, (N, 3, 32, 32) in 8 bits, in the published order."""
    names = published.train if split == "train" else published.test
    rows = np.concatenate([_rows(home / name, published.label_bytes + PIXELS) for name in names])
    images = np.ascontiguousarray(rows[:, published.label_bytes :]).reshape(-1, 3, SIDE, SIDE)
    labels = rows[:, published.label_bytes - 1].astype(np.int64)
    samples = Samples(torch.from_numpy(images), torch.from_numpy(labels))
    check(f"{published.name} {split} in {home}", samples, len(published.classes))
    return samples


def _rows(path: Path, row: int) -> NDArray[np.uint8]:
    """One row per image: labels, then the red, green and blue channel."""
    content = np.fromfile(regular(path), np.uint8)
    if len(content) == 0 or len(content) % row:
        raise MeadaError(f"{path} must hold rows of {row:,} bytes, got {len(content):,} bytes: it is damaged")
    return content.reshape(-1, row)


def read_test(published: Published, root: str | Path | None = None) -> Samples:
    """The whole clean test split, from which the corrupted copies are made."""
    return read(published, find(published, data_root(root)), "test")


# What ``meada corrupt`` knows by name.
TEST_SPLITS: dict[str, Callable[[], Stack]] = {
    name: lambda one=one: cifar_c.stack(one.name, read_test(one))  # type: ignore[misc]
    for name, one in PUBLISHED.items()
}


def _classes(published: Published, home: Path) -> tuple[str, ...]:
    """CIFAR-100 has its hundred names in a file next to the images."""
    listing = home / "fine_label_names.txt"
    names = read_text(listing).split() if listing.is_file() else []
    return tuple(names) if len(names) == len(published.classes) else published.classes
