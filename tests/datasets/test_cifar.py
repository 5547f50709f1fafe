"""CIFAR in its binary version, read from small files that are written here byte by byte."""

from pathlib import Path

import numpy as np
import pytest
import torch

from meada.corruptions.sources import open_source
from meada.datasets import DATASETS
from meada.datasets.cifar import CIFAR10, CIFAR100, TEST_SPLITS, cifar10, cifar100, find, read, read_test
from meada.datasets.published.catalogue import CATALOGUE
from meada.datasets.published.checks import examine
from meada.errors import MeadaError

SMALL = {"train": 12, "validation": 3, "test": 4}


def rows(n: int, classes: int = 10, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (n, 3072), np.uint8), np.arange(n, dtype=np.uint8) % classes


def write_binary(path: Path, pixels: np.ndarray, *labels: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(np.concatenate([*(label[:, None] for label in labels), pixels], 1).tobytes())


@pytest.fixture
def ten(tmp_path: Path) -> Path:
    for k in range(1, 6):
        write_binary(tmp_path / f"cifar-10-batches-bin/data_batch_{k}.bin", *rows(3, seed=k))
    write_binary(tmp_path / "cifar-10-batches-bin/test_batch.bin", *rows(4, seed=9))
    return tmp_path


def test_a_binary_row_is_a_label_and_three_planes(ten):
    home = find(CIFAR10, ten)
    samples = read(CIFAR10, home, "train")
    assert samples.images.shape == (15, 3, 32, 32) and samples.images.dtype == torch.uint8
    pixels, labels = rows(3, seed=2)  # the second batch
    assert samples.labels[3:6].tolist() == labels.tolist()
    # row-major planes, red first
    assert int(samples.images[4, 1, 2, 5]) == pixels[1, 1024 + 2 * 32 + 5]


def test_cifar_100_has_its_fine_label_second(tmp_path):
    home = tmp_path / "cifar-100-binary"
    for name, n in (("train", 5), ("test", 3)):
        pixels, fine = rows(n, classes=100)
        write_binary(home / f"{name}.bin", pixels, np.full(n, 7, np.uint8), fine + 60)
    samples = read(CIFAR100, find(CIFAR100, tmp_path), "train")
    assert samples.labels.tolist() == [60, 61, 62, 63, 64] and samples.images.shape[0] == 5


def test_damage_is_named(ten):
    path = ten / "cifar-10-batches-bin" / "data_batch_3.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(MeadaError, match=r"data_batch_3.bin must hold rows of 3,073 bytes, got 9,218 bytes"):
        cifar10(root=ten, **SMALL)
    path.unlink()
    with pytest.raises(MeadaError, match="data_batch_3.bin is missing"):
        cifar10(root=ten, **SMALL)


def test_a_label_beyond_the_classes_is_refused(ten):
    write_binary(ten / "cifar-10-batches-bin/test_batch.bin", rows(1)[0], np.array([10], np.uint8))
    with pytest.raises(MeadaError, match="cifar10 test in .* must have labels from 0 to 9, got labels from 10 to 10"):
        cifar10(root=ten, **SMALL)


def test_a_folder_of_the_sets_own_name_is_looked_into(ten):
    (ten / "cifar10").mkdir()
    (ten / "cifar-10-batches-bin").rename(ten / "cifar10" / "cifar-10-batches-bin")
    assert len(read_test(CIFAR10, ten)) == 4


def test_nothing_there_says_what_is_looked_for(tmp_path):
    with pytest.raises(MeadaError, match="must hold the folder cifar-100-binary, got none: unpack the binary version"):
        cifar100(root=tmp_path)


@pytest.mark.parametrize("sizes", [{"train": 13}, {"validation": 0}, {"train": 0}, {"test": 5}])
def test_sizes_that_do_not_fit_are_refused(ten, sizes):
    with pytest.raises(MeadaError, match="must be"):
        cifar10(root=ten, **{**SMALL, **sizes})


def test_the_held_out_part_is_drawn_by_seed_and_disjoint(ten):
    task = DATASETS["cifar10"](root=ten, **SMALL)
    whole = read(CIFAR10, find(CIFAR10, ten), "train")
    place = lambda part: {int((whole.images == image).flatten(1).all(1).nonzero()) for image in part.images}
    held, learnt = place(task.validation), place(task.train)
    assert held | learnt == set(range(15)) and not held & learnt
    assert place(cifar10(root=ten, **SMALL).validation) == held
    others = [place(cifar10(root=ten, **SMALL, split_seed=k).validation) for k in (1, 2, 3)]
    assert any(other != held for other in others)
    assert "3 held out, drawn by seed 0" in task.provenance["cifar10"]
    assert task.classes[3] == "cat" and len(task.clean) == 4 and task.severities == 5
    assert task.crafted == "corruptions"


def test_real_cifar_10_is_read_whole(real_data):
    if not any((real_data / p / CIFAR10.folder).is_dir() for p in (".", "cifar10")):
        pytest.skip("needs CIFAR-10 in its binary form")
    train = read(CIFAR10, find(CIFAR10, real_data), "train")
    assert train.labels.bincount().tolist() == [5_000] * 10
    assert abs(float(train.images[:, 0].double().mean()) / 255 - 0.4914) < 1e-4  # the red mean
    assert read_test(CIFAR10, real_data).labels[:8].tolist() == [3, 8, 8, 0, 6, 6, 1, 6]


def test_the_test_split_goes_by_its_name_to_be_corrupted(ten, monkeypatch):
    monkeypatch.setenv("MEADA_DATA", str(ten))
    stack = open_source("cifar10", sources=TEST_SPLITS)
    pixels, labels = rows(4, seed=9)
    assert stack.labels.tolist() == labels.tolist()
    # channels last, as the published corrupted files have them
    assert stack.images.shape == (4, 32, 32, 3)
    assert int(stack.images[1, 2, 5, 1]) == pixels[1, 1024 + 2 * 32 + 5]


@pytest.mark.parametrize("within", ["", "cifar10"])
def test_the_catalogue_reads_it_where_a_run_would_find_it(ten, tmp_path, within):
    root = tmp_path / "data"
    (root / within).mkdir(parents=True)
    (ten / "cifar-10-batches-bin").rename(root / within / "cifar-10-batches-bin")
    found = examine(CATALOGUE["cifar10"], root)
    assert (found.state, found.images) == ("different", 19)  # five files of 3 and one of 4
    assert "60,000 images are published" in found.note
    assert find(CIFAR10, root).name == "cifar-10-batches-bin"


def test_the_catalogue_says_which_file_is_missing_or_broken(ten):
    path = ten / "cifar-10-batches-bin/data_batch_2.bin"
    path.write_bytes(b"x" * 10)
    assert examine(CATALOGUE["cifar10"], ten).state == "unreadable"
    path.unlink()
    found = examine(CATALOGUE["cifar10"], ten)
    assert found.state == "incomplete" and "data_batch_2.bin is missing" in found.note
