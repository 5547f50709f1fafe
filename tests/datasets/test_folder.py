"""One's own pictures: what is read as what, what is left out, and that tests stay unseen."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from meada.datasets.folder import folder
from meada.datasets.pictures.split import split
from meada.datasets.pictures.survey import survey
from meada.errors import MeadaError


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEADA_CACHE", str(tmp_path / "cache"))


def paint(path: Path, level: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 6), (level, level, level)).save(path)


@pytest.fixture
def classes(tmp_path: Path) -> Path:
    """Ten dark and five bright pictures; each has a level of its own."""
    root = tmp_path / "photos"
    for i in range(10):
        paint(root / "dark" / f"{i}.png", 10 + i)
    for i in range(5):
        paint(root / "light" / f"{i}.bmp", 200 + i)
    return root


def levels(images: torch.Tensor) -> list[int]:
    return sorted(int(x[0, 0, 0]) for x in images)


def test_each_class_is_split_in_the_same_proportion(classes):
    task = folder(path=str(classes), side=4, held_out=0.2)
    assert task.classes == ("dark", "light")
    assert Counter(task.validation.labels.tolist()) == {0: 2, 1: 1}
    assert Counter(task.train.labels.tolist()) == {0: 8, 1: 4}
    assert levels(torch.cat([task.train.images, task.validation.images])) == [
        *range(10, 20), *range(200, 205)
    ]  # fmt: skip
    assert all((x[0, 0, 0] >= 200) == (y == 1) for x, y in zip(*_pair(task.train), strict=True))


def test_the_draw_is_the_seeds(classes):
    held = [levels(folder(path=str(classes), side=4, seed=s).validation.images) for s in (0, 0, 1)]
    assert held[0] == held[1] != held[2]


def test_domains_are_pooled_and_told_apart(tmp_path):
    for domain, level in (("day", 10), ("night", 20)):
        for name, more in (("cat", 0), ("dog", 100)):
            for i in range(3):
                paint(tmp_path / "tree" / domain / name / f"{i}.png", level + more + i)
    task = folder(path=str(tmp_path / "tree"), side=4, held_out=0.3)
    assert task.sources == ("day", "night") and task.classes == ("cat", "dog")
    assert task.train.domains is not None
    for x, y, d in zip(*_pair(task.train), task.train.domains, strict=True):
        assert int(x[0, 0, 0]) // 3 * 3 in range(8 + 10 * d + 100 * y, 13 + 10 * d + 100 * y)
    assert Counter(task.validation.domains.tolist()) == {0: 2, 1: 2}


@pytest.mark.parametrize("heading", ["path,label\n", ""])
def test_a_list_names_files_beside_it(classes, heading):
    lines = [f"dark/{i}.png,night shift" for i in range(4)] + [f"light/{i}.bmp,day" for i in range(4)]
    (classes / "list.csv").write_text(heading + "\n".join(lines) + "\n")
    task = folder(path=str(classes / "list.csv"), side=4)
    assert task.classes == ("day", "night shift") and task.sources == ("list",)
    assert len(task.train) + len(task.validation) == 8


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("", "it is empty"),
        ("dark/0.png\n", "a line is 'dark/0.png'"),
        ("dark/0.png,a\ndark/0.png,b\n", "labels dark/0.png as 'a' and as 'b'"),
        ("gone.png,a\nlost.png,b\n", "gone.png is not there"),
    ],
)
def test_a_bad_list_is_one_sentence(classes, text, sentence):
    (classes / "list.csv").write_text(text)
    with pytest.raises(MeadaError, match=sentence):
        folder(path=str(classes / "list.csv"), side=4)


def test_fewer_are_spread_over_the_classes(classes):
    task = folder(path=str(classes), side=4, train=6)
    assert Counter(task.train.labels.tolist()) == {0: 4, 1: 2}


def test_tests_go_by_their_folders_and_know_the_same_classes(classes, tmp_path):
    for name in ("dark", "light", "purple"):
        paint(tmp_path / "far" / name / "a.png", 50)
        paint(tmp_path / "other" / "photos" / name / "a.png", 50)
    task = folder(path=str(classes), tests=[str(tmp_path / "far"), str(tmp_path / "other/photos")], side=4)
    assert list(task.targets) == ["far", "other-photos"]
    assert [len(one) for one in task.targets.values()] == [2, 2]
    assert "'purple' of a test folder is unknown" in task.provenance["left out"]
    with pytest.raises(MeadaError, match="none of dark, light"):
        paint(tmp_path / "strange" / "cat" / "a.png", 50)
        folder(path=str(classes), tests=[str(tmp_path / "strange")], side=4)


def test_a_test_that_was_learnt_from_is_refused(classes, tmp_path):
    with pytest.raises(MeadaError, match="must hold none of the pictures to train on, got 15"):
        folder(path=str(classes), tests=[str(classes)], side=4)


def test_a_survey_is_remembered_until_a_file_changes(classes):
    told: list[int] = []
    first = survey(classes, tell=lambda done, n: told.append(done))
    assert len(told) == 15 and first.side == 6
    assert survey(classes, tell=lambda done, n: told.append(done)) == first and len(told) == 15
    (classes / "dark" / "3.png").write_bytes(b"broken now")
    again = survey(classes, tell=lambda done, n: told.append(done))
    assert len(told) == 30 and list(again.skipped) == ["dark/3.png"]


def test_one_picture_is_learnt_from_and_said(classes):
    paint(classes / "single" / "a.png", 100)
    found = survey(classes)
    fit, kept = split(found, held_out=0.2, seed=0)
    assert "class 'single' has one picture" in found.remarks[0]
    assert "single" in {p.label for p in fit} and "single" not in {p.label for p in kept}


@pytest.mark.parametrize(
    "made, sentence",
    [
        ([], "holds no CLASS folders"),
        (["a.png"], "holds no CLASS folders"),
        (["cat/a.png"], "has one class, 'cat'"),
        (["cat/a.txt", "dog/b.txt"], "holds no CLASS folders"),
    ],
)
def test_what_is_no_data_set_is_refused(tmp_path, made, sentence):
    root = tmp_path / "odd"
    root.mkdir()
    for name in made:
        if name.endswith("png"):
            paint(root / name, 5)
        else:
            (root / name).parent.mkdir()
            (root / name).write_text("no")
    with pytest.raises(MeadaError, match=sentence):
        folder(path=str(root), side=4)


def test_pixels_are_those_of_the_lenient_decoder(tmp_path):
    for k, name in enumerate(("a", "b")):
        for i in range(2):
            (tmp_path / "deep" / name).mkdir(parents=True, exist_ok=True)
            deep = np.full((8, 8), 0x80FF + 0x1000 * k + 0x100 * i, np.uint16)
            Image.fromarray(deep).save(tmp_path / "deep" / name / f"{i}.png")
    task = folder(path=str(tmp_path / "deep"), side=4)
    both = torch.cat([task.train.images, task.validation.images])
    assert levels(both) == [0x80, 0x81, 0x90, 0x91]  # the upper 8 of 16 bits


def _pair(samples):
    return samples.images, samples.labels
