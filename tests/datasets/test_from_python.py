"""Data sets given in Python become the same task as a folder, without filling memory."""

import os
import tempfile
import weakref
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset, IterableDataset

from meada.datasets.folder import folder
from meada.datasets.from_python import pictures_of
from meada.datasets.task import Task
from meada.errors import MeadaError


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").mkdir()
    monkeypatch.setenv("MEADA_CACHE", str(tmp_path / "cache"))


def as_task(
    data: Any, *, tests: dict[str, Any] | None = None, out: Any = None, group: str = "", **settings: Any
) -> Task:
    """The task that robustify makes of data sets: written as pictures, then read as a folder."""
    home = Path(out or tempfile.mkdtemp(dir=os.environ["MEADA_CACHE"]))
    given = {"data": data, **(tests or {})}
    first, *others = [str(pictures_of(one, home, name=name, group=group)) for name, one in given.items()]
    return folder(path=first, tests=others, group=group, **settings)


def pixels(k: int, side: int = 8) -> np.ndarray:
    return np.random.default_rng(k).integers(0, 256, (side, side, 3), np.uint8)


class Items(Dataset[Any]):
    """Whatever ``make`` gives for each number."""

    def __init__(self, n: int, make: Any, **more: Any) -> None:
        self.n, self.make = n, make
        self.__dict__.update(more)

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, k: int) -> Any:
        return self.make(k)


KINDS = {
    "pil": lambda k: Image.fromarray(pixels(k)),
    "channels last": pixels,
    "channels first": lambda k: np.ascontiguousarray(pixels(k).transpose(2, 0, 1)),
    "tensor": lambda k: torch.from_numpy(pixels(k)).permute(2, 0, 1),
    "float tensor": lambda k: torch.from_numpy(pixels(k)).permute(2, 0, 1) / 255,
    "16 bits": lambda k: pixels(k).astype(np.uint16) * 256,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_image_gives_the_pixels_of_a_folder(tmp_path, kind):
    for k in range(12):
        (tmp_path / "photos" / str(k % 2)).mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels(k)).save(tmp_path / "photos" / str(k % 2) / f"{k:02}.png")
    wanted = folder(path=str(tmp_path / "photos"), side=8)
    task = as_task(Items(12, lambda k: (KINDS[kind](k), k % 2)), side=8)
    assert task.classes == wanted.classes == ("0", "1")
    every = lambda t: {
        bytes(x.numpy()): int(y)
        for part in (t.train, t.validation)
        for x, y in zip(part.images, part.labels, strict=True)
    }
    assert every(task) == every(wanted)
    assert Counter(task.validation.labels.tolist()) == {0: 1, 1: 1}


def test_memory_does_not_grow_with_the_number_of_samples(tmp_path):
    """Of 300 images that the data set makes, no more than two are alive at a time."""
    alive, most = set[int](), [0]

    def make(k: int) -> Any:
        image = pixels(k)
        alive.add(k)
        most[0] = max(most[0], len(alive))
        weakref.finalize(image, alive.discard, k)
        return image, k % 3

    task = as_task(Items(300, make), side=8, out=tmp_path / "out")
    assert len(task.train) + len(task.validation) == 300 and most[0] <= 2
    maps = Path("/proc/self/maps").read_text()
    assert maps.count(str(tmp_path / "cache")) >= 2  # both parts are mapped from disk


def test_a_data_set_is_written_once_and_read_again(tmp_path):
    read = []

    def make(k: int) -> Any:
        read.append(k)
        return pixels(k), k % 2

    first = as_task(Items(40, make), side=8, out=tmp_path / "out")
    read.clear()
    again = as_task(Items(40, make), side=8, out=tmp_path / "out")
    assert torch.equal(first.train.images, again.train.images) and len(read) <= 17
    with pytest.raises(MeadaError, match="must list the data set given, got 40 pictures for its 39"):
        as_task(Items(39, make), side=8, out=tmp_path / "out")
    with pytest.raises(MeadaError, match=r"must list the data set given, got label 0 for 1 in item 0"):
        as_task(Items(40, lambda k: (pixels(k), 1)), side=8, out=tmp_path / "out")
    with pytest.raises(MeadaError, match=r"must list the data set given, got other pixels in item 2$"):
        as_task(Items(40, lambda k: (pixels(k + 100 * (k > 0)), k % 2)), side=8, out=tmp_path / "out")


def test_pixels_that_change_at_every_read_are_not_compared(tmp_path):
    flips = np.random.default_rng(0)
    data = Items(40, lambda k: (pixels(k)[:, :: flips.choice([-1, 1])].copy(), k % 2))
    assert pictures_of(data, tmp_path) == pictures_of(data, tmp_path)


def test_a_stop_in_the_middle_starts_again(tmp_path):
    def stopped(k: int) -> Any:
        if k == 7:
            raise KeyboardInterrupt
        return pixels(k), k % 2

    with pytest.raises(KeyboardInterrupt):
        pictures_of(Items(10, stopped), tmp_path)
    assert not (tmp_path / "data.csv").exists()
    assert len(pictures_of(Items(10, lambda k: (pixels(k), k % 2)), tmp_path).read_text().splitlines()) == 11


def test_ten_classes_keep_the_order_of_their_numbers_and_names_are_taken():
    task = as_task(Items(44, lambda k: (pixels(k), k % 11)), side=8)
    assert task.classes == tuple(f"{k:02}" for k in range(11))
    named = as_task(Items(8, lambda k: (pixels(k), k % 2), classes=["cat", "dog"]), side=8)
    assert named.classes == ("cat", "dog")


def test_a_row_of_labels_is_several_labels():
    data = Items(40, lambda k: (pixels(k), torch.tensor([k % 2, k % 3 == 0, 1.0])))
    task = as_task(data, side=8, multilabel=True)
    assert task.multilabel and task.classes == ("label0", "label1", "label2")
    assert task.train.labels.shape[1] == 3 and (task.train.labels[:, 2] == 1).all()
    with pytest.raises(MeadaError, match="must have one column 'label', got the label columns label0, label1"):
        as_task(data, side=8)


@pytest.mark.parametrize("wrap", [lambda y: np.array([y]), lambda y: torch.tensor([y]), lambda y: [float(y)]])
def test_a_class_number_in_an_array_of_one_is_a_class_number(wrap):
    """As MedMNIST gives it, of two classes too."""
    task = as_task(Items(12, lambda k: (pixels(k), wrap(k % 2))), side=8)
    assert task.classes == ("0", "1") and not task.multilabel


def test_labels_that_never_vary_are_named():
    data = Items(20, lambda k: (pixels(k), [k % 2, 1, 0]), classes=["ill", "human", "alien"])
    warned = as_task(data, side=8, multilabel=True).provenance["warnings"]
    assert "labels must differ between pictures, got 'human' = 1 and 'alien' = 0 for all of them" in warned
    with pytest.raises(MeadaError, match="must have a label that some pictures have and others lack, got 'label0' = 1"):
        as_task(Items(20, lambda k: (pixels(k), [1, 0])), side=8, multilabel=True)


def test_read_only_and_reversed_arrays_are_read_without_a_warning(recwarn):
    def make(k: int) -> Any:
        image = pixels(k)[::-1]
        image.flags.writeable = False
        return image, k % 2

    assert len(as_task(Items(12, make), side=8).train) == 10 and not [str(one.message) for one in recwarn]


class ClassLabel:
    names = ("ill", "well")


class Hub(Items):
    """What a Hugging Face dataset looks like from outside."""

    features = {"patient": object(), "scan": type("Image", (), {})(), "finding": ClassLabel()}


def test_a_hugging_face_dataset_by_its_features_with_tests_and_groups(tmp_path):
    make = lambda k: {"patient": f"p{k // 4}", "scan": Image.fromarray(pixels(k)), "finding": k % 2}
    far = Hub(6, lambda k: {"patient": "x", "scan": Image.fromarray(pixels(100 + k)), "finding": k % 2})
    (tmp_path / "shop" / "ill").mkdir(parents=True)
    Image.fromarray(pixels(500)).save(tmp_path / "shop" / "ill" / "a.png")
    task = as_task(Hub(40, make), tests={"far": far, "shop": tmp_path / "shop"}, side=8, group="patient")
    assert task.classes == ("ill", "well") and {k: len(v) for k, v in task.targets.items()} == {"far": 6, "shop": 1}
    patient = {bytes(np.asarray(make(k)["scan"]).transpose(2, 0, 1).tobytes()): make(k)["patient"] for k in range(40)}
    sides = [{patient[bytes(x.numpy().tobytes())] for x in part.images} for part in (task.train, task.validation)]
    assert not sides[0] & sides[1] and len(sides[1]) == 2


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Any:
        return iter([(pixels(0), 0)])


@pytest.mark.parametrize(
    "data, sentence",
    [
        (Stream(), "must be a data set with a length and items by number, got Stream, which is read as a stream"),
        ({"train": 1, "test": 2}, r"must be one data set, got several by name \(train, test\)"),
        (7, "must be a folder, a CSV file, a Dataset or a Hugging Face dataset, got int"),
        (Items(0, None), "must hold at least one labelled image, got none"),
        (Items(3, lambda k: pixels(k)), r"must be \(image, label\) or a dictionary of both, got a ndarray"),
        (Items(3, lambda k: ("a.png", 1)), "must be PIL images, arrays or tensors, got a str in item 0"),
        (Items(3, lambda k: (pixels(k), 0.5)), "must be class numbers from 0 up, names, .* got 0.5 in item 0"),
        (Items(3, lambda k: (pixels(k), -1)), "got -1 in item 0"),
        (Items(3, lambda k: (pixels(k), None)), "got None in item 0"),
        (Items(3, lambda k: {"picture": pixels(k), "age": 3}), "one of the keys labels, label, .* got picture, age"),
        (Items(3, lambda k: (pixels(k).astype(np.int64), 0)), "must be uint8, uint16 or floats .* got torch.int64"),
        (Items(3, lambda k: (torch.randn(3, 8, 8) * 2, 0)), r"must have values in \[0, 1\], got values from"),
        (Items(3, lambda k: (np.zeros((5, 5, 5, 3), np.uint8), 0)), r"got shape \(5, 5, 5, 3\) in item 0"),
        (Items(3, lambda k: (pixels(k)[:0], 0)), r"must have at least one pixel, got shape \(0, 8, 3\) in item 0"),
        (
            Items(3, lambda k: (torch.rand(3, 8, 0), 0)),
            r"must have at least one pixel, got shape \(3, 8, 0\) in item 0",
        ),
        (
            Items(3, lambda k: (Image.new("L", (8, 0)), 0)),
            r"must have at least one pixel, got shape \(8, 0\) in item 0",
        ),
        (Items(3, lambda k: (pixels(k), [0.5])), "must be class numbers from 0 up, names, .* got .0.5. in item 0"),
        (Items(3, lambda k: (pixels(k), 5), classes=["a", "b"]), "must be below the 2 classes of the data set, got 5"),
        (Items(3, lambda k: (pixels(k), 5) if k < 2 else 3), "item 2 of the data set must have an image and a label"),
    ],
)
def test_what_is_no_labelled_picture_is_refused_with_what_was_found(data, sentence):
    with pytest.raises(MeadaError, match=sentence):
        as_task(data, side=8)
