"""The digits task: the right images in the right part, as the paper prepares them."""

import bz2
import re
from collections import Counter
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

from meada.datasets.digits import CLASSES, READERS, digits, load_domain, read_mnist, resized
from meada.datasets.task import Task
from meada.errors import MeadaError

PARTS = {"train": 7, "validation": 3}


def test_source_is_the_first_images_and_validation_the_next(published: Path):
    task = digits(root=published, **PARTS)
    assert task.classes == tuple("0123456789")
    assert task.sources == ("mnist",)
    assert task.train.labels.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert task.validation.labels.tolist() == [7, 8, 9]
    raw = read_mnist(published, "train")
    assert np.array_equal(task.validation.images[0, 0].numpy(), resized(raw.images[7:8])[0])


def test_every_domain_is_32x32_rgb_in_8_bits(published: Path):
    task = digits(root=published, **PARTS)
    assert list(task.targets) == ["svhn", "mnist_m", "syn", "usps"]
    for part in task.parts().values():
        assert part.images.shape[1:] == (3, 32, 32)
        assert part.images.dtype == torch.uint8
        assert part.images.is_contiguous()
        assert part.labels.dtype == torch.int64


def test_labels_are_the_digits_whatever_the_file_calls_them(published: Path):
    labels = {name: load_domain(name, published).labels.tolist() for name in READERS}
    assert labels == {
        "mnist": [0, 1, 2, 3],
        "svhn": [1, 0, 9, 2, 0],
        "mnist_m": [7, 0, 9],
        "syn": [3, 0, 1, 4],
        "usps": [9, 0, 1, 2, 3, 5],
    }


def test_grey_images_are_pillows_bilinear_resize_of_the_rgb_image(published: Path):
    """The other order, grey to RGB first and resized then, must give the same bytes."""
    for name in ("mnist", "usps"):
        raw, got = READERS[name](published), load_domain(name, published)
        for image, made in zip(raw.images, got.images, strict=True):
            rgb = Image.fromarray(image).convert("RGB").resize((32, 32), Image.Resampling.BILINEAR)
            assert np.array_equal(made.permute(1, 2, 0).numpy(), np.asarray(rgb))


def test_an_absent_target_is_left_out_and_noted(published: Path):
    (published / "syn/synth_test_32x32.mat").unlink()
    task = digits(root=published, **PARTS)
    assert list(task.targets) == ["svhn", "mnist_m", "usps"]
    assert task.provenance["syn"].startswith("absent")


def test_a_named_target_that_is_missing_is_an_error(published: Path):
    (published / "syn/synth_test_32x32.mat").unlink()
    with pytest.raises(MeadaError, match=r"synth_test_32x32\.mat is missing; .*yaroslav\.ganin"):
        digits(root=published, targets=["svhn", "syn"], **PARTS)


def test_half_a_domain_is_an_error_not_an_absence(published: Path):
    (published / "mnist_m/mnist_m_test_labels.txt").unlink()
    with pytest.raises(MeadaError, match="mnist_m_test_labels.txt is missing"):
        digits(root=published, **PARTS)


def test_targets_may_be_one_name_and_include_the_source_s_test_split(published: Path):
    assert list(digits(root=published, targets="usps", **PARTS).targets) == ["usps"]
    task = digits(root=published, targets=["usps", "mnist"], **PARTS)
    assert len(task.targets["mnist"]) == 4
    assert "train-images" in task.provenance["mnist"]
    assert "t10k-images" in task.provenance["mnist"]


WRONG = {
    "unknown target 'svnh': did you mean 'svhn'": {"targets": ["svnh"]},
    "targets must name at least one of": {"targets": []},
    "train = 10 and validation = 3 images do not fit in the 12": {"train": 10},
    "validation must be 1 or more, got 0": {"validation": 0},
    "train must be 1 or more, got -1": {"train": -1},
}


@pytest.mark.parametrize("said", WRONG)
def test_what_cannot_be_had_is_refused(published: Path, said: str):
    with pytest.raises(MeadaError, match=said):
        digits(root=published, **{**PARTS, **WRONG[said]})


def test_no_target_at_all_is_an_error(published: Path, tmp_path: Path):
    (tmp_path / "bare").mkdir()
    (published / "mnist").rename(tmp_path / "bare/mnist")
    with pytest.raises(MeadaError, match="must hold at least one of svhn, mnist_m, syn, usps, got none"):
        digits(root=tmp_path / "bare", **PARTS)


def test_the_data_folder_comes_from_the_environment(published: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MEADA_DATA", str(published))
    assert len(load_domain("svhn")) == 5


def test_unknown_domain_names_the_nearest():
    with pytest.raises(MeadaError, match="did you mean 'mnist_m'"):
        load_domain("mnistm")


def test_missing_files_say_what_is_expected_and_where_from(tmp_path: Path):
    with pytest.raises(MeadaError) as caught:
        load_domain("mnist", tmp_path)
    said = str(caught.value)
    for part in (
        str(tmp_path / "mnist/t10k-images-idx3-ubyte.gz"),
        "1,648,877 bytes",
        "9fb629c4189551a2d022fa330f9573f3",
        "meada data get mnist",
    ):
        assert part in said
    assert "\n" not in said


def test_a_fault_in_the_labels_is_told_with_the_labels_file(published: Path):
    path = published / "mnist/t10k-labels-idx1-ubyte.gz"
    path.write_bytes(path.read_bytes()[:10])
    with pytest.raises(MeadaError, match="t10k-labels.* cut off .*4,542 bytes, md5 ec29112d"):
        load_domain("mnist", published)


def test_a_web_page_an_empty_file_and_a_folder_are_told_apart(published: Path):
    path = published / "usps/usps.t.bz2"
    path.write_text("\n<!DOCTYPE html><html><body>Not found</body></html>")
    with pytest.raises(MeadaError, match="is a web page, not data; published: usps.t.bz2"):
        load_domain("usps", published)
    path.write_bytes(b"")
    with pytest.raises(MeadaError, match="is empty; published"):
        load_domain("usps", published)
    path.unlink()
    path.mkdir()
    with pytest.raises(MeadaError, match="must be a file, got a folder"):
        load_domain("usps", published)
    folder = published / "mnist_m/mnist_m_test"
    folder.rename(published / "elsewhere")
    folder.write_text("")
    with pytest.raises(MeadaError, match="must be a folder, got a file"):
        load_domain("mnist_m", published)


def test_an_empty_domain_is_refused(published: Path):
    (published / "mnist_m/mnist_m_test_labels.txt").write_text("\n")
    with pytest.raises(MeadaError):
        load_domain("mnist_m", published)


def test_a_domain_without_images_is_refused(published: Path, make: SimpleNamespace):
    make.idx(published / "mnist/t10k-images-idx3-ubyte.gz", np.zeros((0, 28, 28), np.uint8))
    make.idx(published / "mnist/t10k-labels-idx1-ubyte.gz", np.zeros(0, np.uint8))
    with pytest.raises(MeadaError, match="domain 'mnist' must have at least one labelled image"):
        load_domain("mnist", published)


def test_provenance_names_file_checksum_and_whether_it_is_the_published_one(published: Path):
    provenance = digits(root=published, **PARTS).provenance
    assert "not the published eb5a983be6a315427106f1b164d9cef3" in provenance["svhn"]
    assert "no checksum is published" in provenance["mnist_m"]
    assert "images 1 to 7 to train on, the next 3 held out" in provenance["mnist"]


# the published files themselves


@lru_cache(maxsize=1)  # seconds to read, and never written to
def whole_task(root: Path) -> Task:
    return digits(root=root)


def test_published_mnist(real_data: Path):
    train, test = read_mnist(real_data, "train"), read_mnist(real_data)
    assert (len(train.labels), len(test.labels)) == (60_000, 10_000)
    assert train.labels[:5].tolist() == [5, 0, 4, 1, 9]
    assert test.labels[:5].tolist() == [7, 2, 1, 0, 4]
    assert (train.images.min(), train.images.max()) == (0, 255)
    assert np.bincount(train.labels)[[0, 1, 5]].tolist() == [5_923, 6_742, 5_421]


@pytest.mark.parametrize(
    ("name", "n", "histogram"),
    [
        ("svhn", 26_032, [1744, 5099, 4149, 2882, 2523, 2384, 1977, 2019, 1660, 1595]),
        ("usps", 2_007, [359, 264, 198, 166, 200, 160, 170, 147, 166, 177]),
        ("mnist_m", 9_001, None),
    ],
)
def test_published_targets(real_data: Path, name: str, n: int, histogram: list[int] | None):
    read = whole_task(real_data).targets[name]
    assert read.images.shape == (n, 3, 32, 32)
    assert 0 <= read.images.min() < 16
    assert 240 <= read.images.max() <= 255
    counts = read.labels.bincount(minlength=10).tolist()
    assert counts == histogram if histogram else min(counts) > 800


def test_published_usps_agrees_with_an_independent_reader(real_data: Path):
    text = bz2.decompress((real_data / "usps/usps.t.bz2").read_bytes())
    x = np.array(re.findall(rb":(\S+)", text), float).reshape(-1, 256)
    y = np.array(re.findall(rb"(?m)^\d+", text), int)
    raw = READERS["usps"](real_data)
    assert np.array_equal(raw.labels, y - 1)
    assert np.abs(raw.images.reshape(-1, 256) / 127.5 - 1 - x).max() < 1 / 127


def test_published_labels_name_what_the_pictures_show(real_data: Path):
    """The nearest class mean of MNIST: labels shifted by one would score near zero."""
    source = whole_task(real_data)
    flat = lambda images: torch.nn.functional.normalize(images.mean(1, dtype=float).flatten(1))
    means = torch.stack([flat(source.train.images[source.train.labels == k]).mean(0) for k in range(10)])
    for name, at_least in (("usps", 0.5), ("mnist_m", 0.2)):
        part = source.targets[name]
        right = (flat(part.images) @ means.T).argmax(1) == part.labels
        assert right.double().mean() > at_least


def test_published_task(real_data: Path):
    task = whole_task(real_data)
    assert len(task.train) == 10_000
    assert len(task.validation) == 5_000
    assert task.train.labels[:3].tolist() == [5, 0, 4]
    assert Counter(task.train.labels.tolist())[0] == 1_001
    assert task.provenance["usps"].endswith("8ea070ee2aca1ac39742fdd1ef5ed118 (as published)")
    assert task.provenance["mnist"].count("(as published)") == 2
    assert len(CLASSES) == 10
