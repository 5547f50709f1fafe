"""CIFAR (section 4.3): learn from clean photographs, meet fifteen corruptions of the test split."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from meada.corruptions import CORRUPTIONS
from meada.datasets import cifar_c
from meada.datasets.published import safe_pickle
from meada.datasets.published.disk import md5
from meada.datasets.task import Samples, Sizes, Task
from meada.errors import MeadaError
from meada.files import data_root
from meada.machine.limits import regular
from meada.streams import stream

SIDE, PIXELS = 32, 3 * 32 * 32
TEN = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip


@dataclass(frozen=True)
class Published:
    """The two published forms of one data set: folders and the files in them."""

    name: str
    classes: tuple[str, ...]
    corrupted: str  # the published folder of its corruptions
    binary: str
    python: str
    train: tuple[str, ...]  # the files' names, ".bin" added in the binary form
    test: tuple[str, ...]
    label_bytes: int  # before each image in the binary form; the last one is the class
    label_key: str  # in the python form


CIFAR10 = Published(
    name="cifar10",
    classes=TEN,
    corrupted="CIFAR-10-C",
    binary="cifar-10-batches-bin",
    python="cifar-10-batches-py",
    train=tuple(f"data_batch_{k}" for k in range(1, 6)),
    test=("test_batch",),
    label_bytes=1,
    label_key="labels",
)
CIFAR100 = Published(
    name="cifar100",
    classes=tuple(f"class {k}" for k in range(100)),  # where the file of names is missing
    corrupted="CIFAR-100-C",
    binary="cifar-100-binary",
    python="cifar-100-python",
    train=("train",),
    test=("test",),
    label_bytes=2,  # the coarse class, then the fine one
    label_key="fine_labels",
)

FORMS = {  # by the catalogue's names
    "cifar10": (CIFAR10, CIFAR10.binary),
    "cifar10-python": (CIFAR10, CIFAR10.python),
    "cifar100": (CIFAR100, CIFAR100.binary),
    "cifar100-python": (CIFAR100, CIFAR100.python),
}


def cifar(
    published: Published,
    *,
    root: str | Path | None = None,
    train: int = 48_000,
    validation: int = 2_000,
    test: int = 10_000,
    split_seed: int = 0,
    corrupted: str = "auto",
) -> Task:
    """The training split to learn from, less a held-out part; the corrupted test split to meet.

    Args:
        train: images to learn from. The paper learns from all 50,000 and chooses on the test set.
        validation: images of the training split held out, to choose checkpoints by.
        test: images of the test split, the first ones: clean, and under each corruption and
            severity.
        split_seed: which images are held out; the same for every run unless it is changed.
        corrupted: ``official`` (published files), ``generated`` (made from the test split, once),
            ``auto`` (the published ones where they are there), or a folder of either.
    """
    folder = data_root(root)
    home = find(published, folder)
    whole, clean = read(published, home, "train"), read(published, home, "test")
    if train < 1 or validation < 1 or train + validation > len(whole):
        raise MeadaError(
            f"train = {train:,} and validation = {validation:,} images: at least 1 of each, and no "
            f"more than the {len(whole):,} training images of {published.name}, are needed"
        )
    if not 1 <= test <= len(clean):
        raise MeadaError(f"test = {test:,} images: from 1 to the {len(clean):,} test images of {published.name}")
    order = torch.randperm(len(whole), generator=stream(split_seed, "held out", published.name))
    held = cifar_c.open_set(published.corrupted, folder, clean, test, corrupted)
    return Task(
        classes=_classes(published, home),
        train=whole[order[validation : validation + train].sort().values],
        validation=whole[order[:validation].sort().values],
        targets=held.targets,
        sources=(published.name,),
        provenance={
            published.name: _origin(home, train, validation, split_seed),
            **held.provenance,
        },
        clean=clean.first(test),
        severities=len(cifar_c.SEVERITIES),
        crafted="corruptions",
    )


cifar10: Callable[..., Task] = partial(cifar, CIFAR10)
cifar100: Callable[..., Task] = partial(cifar, CIFAR100)


def cifar_sizes(published: Published, *, train: int = 48_000, test: int = 10_000, **_: object) -> Sizes:
    """Every target holds all severities."""
    targets = dict.fromkeys(CORRUPTIONS, len(cifar_c.SEVERITIES) * test)
    return Sizes(len(published.classes), train, targets, side=SIDE)


def find(published: Published, root: Path) -> Path:
    """The folder of either form, in ``root`` or in a folder of the set's name below it.

    The binary form is taken where both are there; records say which.
    """
    for name in (published.binary, published.python):
        for folder in (root / name, root / published.name / name):
            if folder.is_dir():
                return folder
    raise MeadaError(
        f"{root} holds neither {published.binary} nor {published.python}: unpack the published "
        f"{published.name} archive (www.cs.toronto.edu/~kriz/cifar.html) there"
    )


def read(published: Published, home: Path, split: str) -> Samples:
    """One split, (N, 3, 32, 32) in 8 bits, in the published order."""
    names = published.train if split == "train" else published.test
    one = _read_binary if home.name == published.binary else _read_python
    images, labels = zip(*(one(published, home, name) for name in names), strict=True)
    samples = Samples(torch.from_numpy(np.concatenate(images)), torch.from_numpy(np.concatenate(labels)))
    if int(samples.labels.min()) < 0 or int(samples.labels.max()) >= len(published.classes):
        raise MeadaError(
            f"{home}: labels of the {split} split run from {int(samples.labels.min())} to "
            f"{int(samples.labels.max())}: {published.name} has {len(published.classes)} classes"
        )
    return samples


def read_test(published: Published, root: str | Path | None = None) -> Samples:
    """The whole test split, clean: what corruptions are made from."""
    return read(published, find(published, data_root(root)), "test")


def _classes(published: Published, home: Path) -> tuple[str, ...]:
    """CIFAR-100 has its hundred names in a file beside the images."""
    listing, meta = home / "fine_label_names.txt", home / "meta"
    names: Any = []
    if published.label_key == "fine_labels" and listing.is_file():
        names = listing.read_text(encoding="utf-8").split()
    elif published.label_key == "fine_labels" and meta.is_file():
        names = safe_pickle.read(meta).get("fine_label_names", [])
    return tuple(map(str, names)) if len(names) == len(published.classes) else published.classes


Part = tuple[NDArray[np.uint8], NDArray[np.int64]]


def _read_binary(published: Published, home: Path, name: str) -> Part:
    path, row = home / f"{name}.bin", published.label_bytes + PIXELS
    if not path.exists():
        raise MeadaError(f"{path} is missing: {published.name} has it in its binary form")
    content = np.fromfile(regular(path), np.uint8)
    if len(content) == 0 or len(content) % row:
        raise MeadaError(f"{path} has {len(content):,} bytes: rows of {row:,} are published, so it is damaged")
    rows = content.reshape(-1, row)
    images = rows[:, published.label_bytes :].reshape(-1, 3, SIDE, SIDE)
    return np.ascontiguousarray(images), rows[:, published.label_bytes - 1].astype(np.int64)


def _read_python(published: Published, home: Path, name: str) -> Part:
    path = home / name
    batch = safe_pickle.read(path)
    for key in ("data", published.label_key):
        if key not in batch:
            raise MeadaError(f"{path} has no '{key}': {published.name} has it in its python form")
    images, labels = batch["data"], _whole_numbers(path, batch[published.label_key])
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8 or images.ndim != 2:
        raise MeadaError(f"{path}: 'data' is not an array of bytes, a row an image")
    if images.shape != (len(labels), PIXELS):
        raise MeadaError(
            f"{path}: 'data' has shape {images.shape} for {len(labels)} labels: ({len(labels)}, {PIXELS}) is needed"
        )
    return np.array(images).reshape(-1, 3, SIDE, SIDE), labels


def _whole_numbers(path: Path, labels: Any) -> NDArray[np.int64]:
    numbers = isinstance(labels, list) and all(type(label) is int for label in labels)
    if not labels or not numbers:
        raise MeadaError(f"{path}: the labels are not a list of whole numbers")
    return np.array(labels, np.int64)


def _origin(home: Path, train: int, validation: int, seed: int) -> str:
    return (
        f"{train:,} images to learn from and {validation:,} held out, drawn by seed {seed} of the "
        f"training split; {home.name} md5 {md5(home)}"
    )
