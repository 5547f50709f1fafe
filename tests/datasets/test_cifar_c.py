"""CIFAR-C from published or generated files: which of them, whole, and never mixed."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from meada.corruptions import CORRUPTIONS, VALIDATION, corrupt
from meada.corruptions.write import Settings, write
from meada.datasets import cifar_c
from meada.datasets.cifar_c import SEVERITIES, Corrupted, open_set, stack
from meada.datasets.task import Samples
from meada.errors import MeadaError

N = 4


@pytest.fixture
def clean() -> Samples:
    generator = torch.Generator().manual_seed(5)
    images = torch.randint(256, (N, 3, 32, 32), generator=generator, dtype=torch.uint8)
    return Samples(images, torch.tensor([3, 8, 8, 0]))


@pytest.fixture
def official(tmp_path: Path, clean: Samples) -> Path:
    """Files of the published layout; image i of severity s is full of the level 10 s + i."""
    folder = tmp_path / "CIFAR-10-C"
    folder.mkdir()
    levels = np.array([10 * s + i for s in SEVERITIES for i in range(N)], np.uint8)
    for name in CORRUPTIONS:
        np.save(folder / f"{name}.npy", np.tile(levels[:, None, None, None], (1, 32, 32, 3)))
    np.save(folder / "labels.npy", np.tile(clean.labels.numpy(), 5))
    return folder


def opened(folder: Path, clean: Samples, test: int = N, which: str = "auto"):
    return open_set("CIFAR-10-C", folder.parent, clean, test, which)


def test_severities_come_in_order_with_the_labels_of_each(official, clean):
    targets, provenance = opened(official, clean)
    assert list(targets) == list(CORRUPTIONS) and len(targets) == 15
    fog = targets["fog"]
    assert fog.images.shape == (20, 3, 32, 32) and fog.images.dtype == torch.uint8
    assert fog.images[:, 0, 0, 0].tolist() == [10 * s + i for s in SEVERITIES for i in range(N)]
    assert fog.labels.tolist() == [3, 8, 8, 0] * 5
    assert provenance["corruptions"] == "official files in CIFAR-10-C"


def test_a_part_is_the_first_of_each_severity(official, clean):
    fog = opened(official, clean, test=2)[0]["fog"]
    assert fog.images[:, 0, 0, 0].tolist() == [10, 11, 20, 21, 30, 31, 40, 41, 50, 51]
    assert fog.labels.tolist() == [3, 8] * 5
    about = opened(official, clean, test=2)[1]["corruptions"]
    assert "the first 2 of 4 images" in about


def test_images_stay_in_their_file_until_they_are_asked_for(official, clean, monkeypatch):
    opens = []
    load = cifar_c.map_npy
    monkeypatch.setattr(cifar_c, "map_npy", lambda path, *how: opens.append((path.name, *how)) or load(path, *how))
    targets, _ = opened(official, clean)
    opens.clear()
    fog = targets["fog"].images
    assert opens == [("fog.npy", "c")]
    fog[0] = 0  # a private copy: the file is as it was
    assert int(targets["fog"].images[0].max()) == 10


def test_nineteen_where_fifteen_are_meant_leaves_four_out_and_says_so(official, clean):
    for name in VALIDATION:
        shutil.copy(official / "fog.npy", official / f"{name}.npy")
    targets, provenance = opened(official, clean)
    assert list(targets) == list(CORRUPTIONS)
    assert provenance["left out"].startswith("speckle_noise, gaussian_blur, spatter, saturate")


def test_a_missing_corruption_is_named(official, clean):
    (official / "snow.npy").unlink()
    (official / "frost.npy").unlink()
    with pytest.raises(MeadaError, match="CIFAR-10-C must hold all fifteen corruptions, got none of snow, frost"):
        opened(official, clean)


@pytest.mark.parametrize(
    "array, sentence",
    [
        (np.zeros((20, 3, 32, 32), np.uint8), r"shape \(20, 3, 32, 32\)"),
        (np.zeros((16, 32, 32, 3), np.uint8), r"shape \(16, 32, 32, 3\)"),
        (np.zeros((20, 32, 32, 3), np.float32), "float32"),
        (np.zeros((20, 32, 32), np.uint8), r"shape \(20, 32, 32\)"),
    ],
)
def test_a_wrong_array_is_refused(official, clean, array, sentence):
    np.save(official / "contrast.npy", array)
    with pytest.raises(
        MeadaError, match=rf"contrast.npy must hold uint8 of shape \(20, 32, 32, 3\).* got .*{sentence}"
    ):
        opened(official, clean)


def test_a_pickle_in_an_array_file_is_refused(official, clean):
    np.save(official / "contrast.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(MeadaError, match="contrast.npy must be a .npy file of numbers"):
        opened(official, clean)
    (official / "contrast.npy").write_bytes(b"not an array")
    with pytest.raises(MeadaError, match="contrast.npy must be a .npy file of numbers"):
        opened(official, clean)


@pytest.mark.parametrize(
    "labels, sentence",
    [
        (np.array([3, 8, 8, 1] * 5), "got 5 of 20 that differ"),
        (np.array([3, 8, 8, 0] * 4), "must hold 20 labels, .* got 16"),
        (np.array([3.0, 8, 8, 0] * 5), "float64"),
    ],
)
def test_labels_that_do_not_match_are_refused(official, clean, labels, sentence):
    np.save(official / "labels.npy", labels)
    with pytest.raises(MeadaError, match=f"labels.npy.*{sentence}"):
        opened(official, clean)


def test_no_labels_and_no_folder(official, clean, tmp_path):
    (official / "labels.npy").unlink()
    with pytest.raises(MeadaError, match="labels.npy is missing"):
        opened(official, clean)
    with pytest.raises(MeadaError, match="nowhere is missing"):
        opened(official, clean, which=str(tmp_path / "nowhere"))


# --- generated ones


def marked(folder: Path, clean: Samples, **changes) -> None:
    """A sidecar as meada corrupt writes it."""
    sidecar = {
        "generated": True, "complete": True, "by": "meada 0", "images": N, "seed": 0,
        "sha256": stack("x", clean).digest(), "frost": "generated texture", "constants": "cifar",
        "corruptions": list(CORRUPTIONS), "severities": [1, 2, 3, 4, 5],
    }  # fmt: skip
    (folder / "corruptions.json").write_text(json.dumps({**sidecar, **changes}))


def test_generated_files_are_never_taken_for_published_ones(official, clean):
    marked(official, clean)
    about = opened(official, clean)[1]["corruptions"]
    assert about.startswith("generated by meada 0, seed 0, frost: generated texture")
    with pytest.raises(MeadaError, match="must hold the official corruptions, got generated ones"):
        opened(official, clean, which="official")


@pytest.mark.parametrize(
    "changes, sentence",
    [
        (
            {"corruptions": list(CORRUPTIONS[1:])},
            "gaussian_noise, which .* does not list: keep",
        ),
        ({"complete": False}, "is not finished"),
        ({"severities": [1, 3, 5]}, "severities 1 to 5"),
        ({"constants": "imagenet"}, "'imagenet'"),
        ({"sha256": "0"}, "got other images"),
        ({"images": 2}, "images per severity, got 2"),
    ],
)
def test_a_sidecar_that_does_not_fit_is_refused(official, clean, changes, sentence):
    marked(official, clean, **changes)
    with pytest.raises(MeadaError, match=sentence):
        opened(official, clean)


def test_a_sidecar_that_is_none_is_refused(official, clean):
    for text in ("{", "{}", "[]"):
        (official / "corruptions.json").write_text(text)
        with pytest.raises(MeadaError, match="is not what meada corrupt writes"):
            opened(official, clean)


def test_generated_once_from_the_test_split_and_found_again(tmp_path, clean, monkeypatch):
    targets, provenance = open_set("CIFAR-10-C", tmp_path, clean, 2, "auto")
    fog = targets["fog"]
    expected = corrupt(clean.images[:2], "fog", 3)
    assert torch.equal(fog.images[4:6], expected)
    assert provenance["corruptions"].startswith("generated by meada")
    monkeypatch.setattr("meada.corruptions.write.write", lambda *a, **k: pytest.fail("made twice"))
    again, _ = open_set("CIFAR-10-C", tmp_path, clean, 2, "generated")
    assert torch.equal(again["fog"].images, fog.images)


def test_a_folder_that_meada_corrupt_wrote_is_read(tmp_path, clean):
    out = tmp_path / "mine"
    write(stack("test", clean), out, Settings(seed=3))
    targets, provenance = open_set("CIFAR-10-C", tmp_path, clean, N, str(out))
    assert isinstance(targets, Corrupted) and "seed 3" in provenance["corruptions"]
    expected = corrupt(clean.images, "jpeg_compression", 5, seed=3)
    assert torch.equal(targets["jpeg_compression"].images[-N:], expected)
