"""CIFAR in both published forms, read from small files that are written here byte by byte."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from meada.corruptions.sources import open_source
from meada.datasets import DATASETS
from meada.datasets.cifar import CIFAR10, CIFAR100, cifar10, cifar100, find, read, read_test
from meada.datasets.published import safe_pickle
from meada.datasets.published.catalogue import CATALOGUE
from meada.datasets.published.checks import examine
from meada.datasets.test_splits import TEST_SPLITS
from meada.errors import MeadaError

SMALL = {"train": 12, "validation": 3, "test": 4}


def rows(n: int, classes: int = 10, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (n, 3072), np.uint8), np.arange(n, dtype=np.uint8) % classes


def write_binary(path: Path, pixels: np.ndarray, *labels: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(np.concatenate([*(label[:, None] for label in labels), pixels], 1).tobytes())


def write_python(path: Path, pixels: np.ndarray, key: str, labels, protocol: int = 2) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {b"data": pixels, key.encode(): [int(y) for y in labels], b"filenames": [b"a.png"]}
    path.write_bytes(pickle.dumps(content, protocol=protocol))


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


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_both_forms_hold_the_same(ten, tmp_path, protocol):
    binary = read(CIFAR10, find(CIFAR10, ten), "train")
    home = tmp_path / "other" / "cifar-10-batches-py"
    for k in range(1, 6):
        pixels, labels = rows(3, seed=k)
        write_python(home / f"data_batch_{k}", pixels, "labels", labels, protocol)
    python = read(CIFAR10, find(CIFAR10, tmp_path / "other"), "train")
    assert torch.equal(python.images, binary.images)
    assert torch.equal(python.labels, binary.labels)


def test_a_pickle_from_the_old_python_is_read(tmp_path):
    """The bytes that Python 2 wrote: strings for bytes, numpy.core for numpy._core."""
    content = (
        b"\x80\x02}q\x01(U\x04dataq\x02cnumpy.core.multiarray\n_reconstruct\nq\x03"
        b"cnumpy\nndarray\nq\x04K\x00\x85U\x01b\x87Rq\x05(K\x01K\x02K\x03\x86"
        b"cnumpy\ndtype\nq\x06U\x02u1K\x00K\x01\x87Rq\x07(K\x03U\x01|NNNJ\xff\xff\xff\xff"
        b"J\xff\xff\xff\xffK\x00tb\x89U\x06\x00\x01\x02\xfd\xfe\xfftbU\x06labels]q\x08(K\x07K\x02eu."
    )
    path = tmp_path / "batch"
    path.write_bytes(content)
    batch = safe_pickle.read(path)
    assert batch["data"].tolist() == [[0, 1, 2], [253, 254, 255]] and batch["labels"] == [7, 2]


def test_cifar_100_has_its_fine_label_second(tmp_path):
    home = tmp_path / "cifar-100-binary"
    for name, n in (("train", 5), ("test", 3)):
        pixels, fine = rows(n, classes=100)
        write_binary(home / f"{name}.bin", pixels, np.full(n, 7, np.uint8), fine + 60)
    samples = read(CIFAR100, find(CIFAR100, tmp_path), "train")
    assert samples.labels.tolist() == [60, 61, 62, 63, 64] and samples.images.shape[0] == 5
    python = tmp_path / "py" / "cifar-100-python"
    write_python(python / "train", rows(5)[0], "fine_labels", [60, 61, 62, 63, 64])
    assert torch.equal(read(CIFAR100, python, "train").labels, samples.labels)


class Hostile:
    def __reduce__(self):
        return (print, ("this must never be printed",))


@pytest.mark.parametrize(
    "hostile",
    [Hostile(), {"data": Hostile()}, [Hostile()], {"data": np.array([Hostile()], dtype=object)}],
    ids=["whole", "value", "list", "array of objects"],
)
def test_a_hostile_pickle_is_refused_unrun(tmp_path, capsys, hostile):
    path = tmp_path / "data_batch_1"
    path.write_bytes(pickle.dumps(hostile, protocol=2))
    with pytest.raises(MeadaError, match=r"data_batch_1 .*(refused|no type of number)"):
        safe_pickle.read(path)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "content",
    [
        b"cos\nsystem\n(S'false'\ntR.",
        b"cnumpy\nload\n(S'x'\ntR.",
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"\x80\x04\x8c\x08builtins\x8c\x04exec\x93\x8c\x011\x85R.",
        b"cnumpy\ndtype\n(S'O'\ntR.",
        b"Pfile\n.",
        b"\x80\x02]",
        b"no pickle at all",
        b"",
    ],
)
def test_other_names_and_damage_are_refused(tmp_path, content):
    path = tmp_path / "data_batch_1"
    path.write_bytes(content)
    with pytest.raises(MeadaError, match="data_batch_1 is not a batch of CIFAR as published"):
        safe_pickle.read(path)


def test_an_array_shorter_than_its_shape_is_refused(tmp_path):
    path = tmp_path / "data_batch_1"
    good = pickle.dumps({"data": np.zeros((2, 3), np.uint8)}, protocol=4)
    path.write_bytes(good.replace(b"K\x02K\x03\x86", b"K\x02K\x04\x86"))
    with pytest.raises(MeadaError, match="damaged"):
        safe_pickle.read(path)


@pytest.mark.parametrize("form", ["bin", "py"])
def test_damage_is_named(ten, tmp_path, form):
    if form == "bin":
        path = ten / "cifar-10-batches-bin" / "data_batch_3.bin"
        path.write_bytes(path.read_bytes()[:-1])
        with pytest.raises(MeadaError, match=r"data_batch_3.bin has 9,218 bytes: rows of 3,073"):
            cifar10(root=ten, **SMALL)
        path.unlink()
        with pytest.raises(MeadaError, match="data_batch_3.bin is missing"):
            cifar10(root=ten, **SMALL)
        return
    home = tmp_path / "p" / "cifar-10-batches-py"
    for content, sentence in (
        ({"data": np.zeros((2, 3072), np.uint8)}, "has no 'labels'"),
        ({"data": np.zeros((2, 3072), np.uint8), "labels": [1]}, "for 1 labels"),
        ({"data": np.zeros((1, 3072)), "labels": [1]}, "not an array of bytes"),
        ({"data": np.zeros((1, 3072), np.uint8), "labels": ["cat"]}, "whole numbers"),
    ):
        home.mkdir(parents=True, exist_ok=True)
        (home / "test_batch").write_bytes(pickle.dumps(content))
        with pytest.raises(MeadaError, match=sentence):
            read(CIFAR10, home, "test")


def test_a_label_beyond_the_classes_is_refused(ten):
    write_binary(ten / "cifar-10-batches-bin/test_batch.bin", rows(1)[0], np.array([10], np.uint8))
    with pytest.raises(MeadaError, match="labels of the test split run from 10 to 10"):
        cifar10(root=ten, **SMALL)


def test_a_folder_of_the_sets_own_name_is_looked_into(ten):
    (ten / "cifar10").mkdir()
    (ten / "cifar-10-batches-bin").rename(ten / "cifar10" / "cifar-10-batches-bin")
    assert len(read_test(CIFAR10, ten)) == 4


def test_nothing_there_says_what_is_looked_for(tmp_path):
    with pytest.raises(MeadaError, match="neither cifar-100-binary nor cifar-100-python"):
        cifar100(root=tmp_path)


@pytest.mark.parametrize("sizes", [{"train": 13}, {"validation": 0}, {"train": 0}, {"test": 5}])
def test_sizes_that_do_not_fit_are_refused(ten, sizes):
    with pytest.raises(MeadaError, match="images"):
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
    if not any((real_data / p / CIFAR10.binary).is_dir() for p in (".", "cifar10")):
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
def test_the_catalogue_reads_either_form_where_a_run_would_find_it(ten, tmp_path, within):
    root = tmp_path / "data"
    (root / within).mkdir(parents=True)
    (ten / "cifar-10-batches-bin").rename(root / within / "cifar-10-batches-bin")
    found = examine(CATALOGUE["cifar10"], root)
    assert (found.state, found.images) == ("different", 19)  # five files of 3 and one of 4
    assert "60,000 images are published" in found.note
    assert find(CIFAR10, root).name == "cifar-10-batches-bin"
    assert examine(CATALOGUE["cifar10-python"], root).state == "absent"


def test_the_catalogue_says_which_file_of_a_form_is_missing_or_broken(ten):
    path = ten / "cifar-10-batches-bin/data_batch_2.bin"
    path.write_bytes(b"x" * 10)
    assert examine(CATALOGUE["cifar10"], ten).state == "unreadable"
    path.unlink()
    found = examine(CATALOGUE["cifar10"], ten)
    assert found.state == "incomplete" and "data_batch_2.bin is missing" in found.note
