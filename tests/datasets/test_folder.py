"""One's own pictures: what is read as what, what is left out, and that tests stay unseen."""

import errno
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from meada.datasets.folder import folder
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
        ("", "must have lines of path,label, got no line"),
        ("path,label\n", "must have lines of path,label, got no line"),
        ("dark/0.png;a\ndark/1.png;b\n", "got 'dark/0.png;a': separate columns by commas"),
        ("path;label\ndark/0.png;a\n", "got 'path;label': separate columns by commas"),
        ("label,path\na,dark/0.png\n", "must have 'path' as the first of several columns, got 'label,path'"),
        ("filename,label\ndark/0.png,a\n", "must have 'path' as the first of several columns, got 'filename,label'"),
        ("path,label\ndark\\0.png,a\n", "such as dark.0.png: write / between folders"),
        ("dark/0.png\n", "must have lines of path,label, got 'dark/0.png'"),
        ("dark/0.png,a\ndark/0.png,b\n", "must label a file once, got dark/0.png as 'a' and as 'b'"),
        ("gone.png,a\ndark/0.png,b\n", "must name files that are there, got 1 of 2 that are not, such as gone.png"),
        ("path,a,b\ndark/0.png,1,yes\n", "must have 0 or 1 in the label column 'b', got 'yes'"),
        ("path,a,a\ndark/0.png,1,1\n", "must have columns of different names, got path,a,a"),
        ("path,a,b\ndark/0.png,1,1\n", "must have one column 'label', got the label columns a, b"),
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
    assert "test far: unknown classes are left out: purple" in task.provenance["left out"]
    with pytest.raises(MeadaError, match="must have some of the classes dark, light, got cat"):
        paint(tmp_path / "strange" / "cat" / "a.png", 50)
        folder(path=str(classes), tests=[str(tmp_path / "strange")], side=4)


def test_what_is_missing_in_a_test_folder_is_told_with_its_name(classes, tmp_path):
    for name in ("far/dark", "far/light", "other/photos/dark"):
        paint(tmp_path / name / "a.png", 50)
        (tmp_path / name / "b.png").write_text("no picture")
    for name in ("day/dark", "day/light", "night/light"):
        paint(tmp_path / "domains" / name / "a.png", 60)
    tests = [str(tmp_path / name) for name in ("far", "other/photos", "domains")]
    unreadable = "b.png is not a readable picture: unknown format"
    assert folder(path=str(classes), tests=tests, side=4).provenance["left out"] == (
        f"test far: 2 files are left out: dark/{unreadable}; light/{unreadable}; "
        f"test other-photos: 1 file is left out: dark/{unreadable}; no pictures of class light; "
        "test day, night: no pictures of class dark in night"
    )


def test_a_label_that_no_picture_of_a_test_has_is_told(tmp_path):
    path = several_labels(tmp_path / "many", 20)
    paint(tmp_path / "far" / "a.png", 50)
    (tmp_path / "far" / "far.csv").write_text("path,red,green,rare\na.png,0,1,0\n")
    task = folder(path=str(path), tests=[str(tmp_path / "far" / "far.csv")], side=4, multilabel=True)
    assert task.provenance["left out"] == "test far: no pictures of class rare, red"


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


@pytest.mark.parametrize("content", ["", "{", "[]", '{"dark/0.png": 3}', "\x00"])
def test_a_damaged_memory_of_a_survey_is_made_again(classes, tmp_path, content):
    first = survey(classes)
    (path,) = (tmp_path / "cache").glob("survey-*.json")
    path.write_text(content)
    assert survey(classes) == first and survey(classes) == first


@pytest.mark.parametrize("copies", [1, 3])
def test_a_class_with_a_single_picture_is_refused(classes, copies):
    for i in range(copies):
        paint(classes / "single" / f"{i}.png", 100)
    with pytest.raises(MeadaError, match="must have two pictures that differ, .* got one of 'single'"):
        folder(path=str(classes), side=4)


def several_labels(root: Path, n: int) -> Path:
    """Pictures that are red, green, both or neither; ``rare`` is one in ten."""
    lines = ["path,red,green,rare"]
    for i in range(n):
        red, green, rare = i % 2, i // 2 % 2, int(i % 10 == 7)
        root.mkdir(exist_ok=True)
        Image.new("RGB", (6, 6), (200 * red + i % 50, 200 * green + i // 50, 255 * rare)).save(root / f"{i}.png")
        lines.append(f"{i}.png,{red},{green},{rare}")
    (root / "list.csv").write_text("\n".join(lines))
    return root / "list.csv"


def test_several_label_columns_are_several_labels(tmp_path):
    path = several_labels(tmp_path / "many", 60)
    task = folder(path=str(path), side=4, multilabel=True)
    assert task.multilabel and task.classes == ("red", "green", "rare")
    for part, n in ((task.train, 48), (task.validation, 12)):
        assert part.labels.shape == (n, 3) and part.labels.dtype == torch.float32
        shown = torch.stack(
            [part.images[:, 0, 0, 0] >= 200, part.images[:, 1, 0, 0] >= 200, part.images[:, 2, 0, 0] > 9]
        )
        assert torch.equal(part.labels, shown.T.float())
    assert task.validation.labels[:, 2].sum() == 1  # one of the six rare ones
    other = several_labels(tmp_path / "other", 4)
    with pytest.raises(MeadaError, match="must hold none of the pictures to train on"):
        folder(path=str(path), tests=[str(other)], side=4, multilabel=True)
    other.write_text("path,red,blue\n0.png,1,0\n")
    with pytest.raises(MeadaError, match="must have the label columns red, green, rare, got red, blue"):
        folder(path=str(path), tests=[str(other)], side=4, multilabel=True)


def test_a_thousand_classes_and_an_imbalance_of_a_hundred(tmp_path):
    """Every class has its share held out, down to one of two pictures."""
    lines = []
    (tmp_path / "wide").mkdir()
    for i in range(2_200):
        label = i if i < 1_000 else i - 1_000 if i < 2_000 else 0
        Image.new("RGB", (2, 2), (i % 256, i // 256, 7)).save(tmp_path / "wide" / f"{i}.bmp")
        lines.append(f"{i}.bmp,class{label:04}")
    (tmp_path / "wide" / "list.csv").write_text("\n".join(lines))
    task = folder(path=str(tmp_path / "wide" / "list.csv"), side=2)
    held = Counter(task.validation.labels.tolist())
    assert len(task.classes) == len(held) == 1_000 and held[0] == 40 and held[1] == 1
    assert "warnings" not in task.provenance


@pytest.mark.parametrize(
    "made, sentence",
    [
        ([], "must have pictures in folders CLASS/.*, got none"),
        (["a.png"], "must have pictures in folders CLASS/.*, got 1 pictures outside of a folder of their class"),
        (["cat/a.png"], "must have at least two classes, got one, 'cat'"),
        (["cat/a.txt", "dog/b.txt"], "must have pictures in folders CLASS/.*, got none"),
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


@pytest.mark.parametrize("name", [b"a\nb", b"a\rb", b"\xff\xfe"])
def test_a_class_that_no_model_file_can_hold_is_refused_at_once(classes, name):
    """Classes are kept one per line, in UTF-8: such a model could not be opened after its training."""
    os.rename(classes / "light", os.path.join(os.fsencode(classes), name))
    with pytest.raises(MeadaError, match="folders whose names are one line of UTF-8, got '"):
        folder(path=str(classes), side=4)


def test_a_broken_link_is_left_out_and_named(classes):
    (classes / "dark" / "lost.png").symlink_to("nowhere.png")
    assert (
        "dark/lost.png is not a file (perhaps a broken link)"
        in folder(path=str(classes), side=4).provenance["left out"]
    )


def test_a_class_of_one_group_leaves_nothing_to_hold_out(classes):
    with pytest.raises(
        MeadaError, match="must have two pictures of a class in one domain that belong to different groups"
    ):
        folder(path=str(classes), side=4, group="^(.)")


def test_a_picture_may_have_any_name(classes):
    os.rename(classes / "light" / "0.bmp", os.path.join(os.fsencode(classes), b"light", b"\xff\n\x1b[31m.bmp"))
    assert len(folder(path=str(classes), side=4).train) == 12


def test_a_cache_that_cannot_be_written_says_what_to_do(classes, monkeypatch, tmp_path):
    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("meada.files.tempfile.mkstemp", refused)
    with pytest.raises(MeadaError, match="must be a writable folder, got: Read-only .* set MEADA_CACHE"):
        folder(path=str(classes), side=4)


def test_pictures_that_are_deeper_or_outside_of_a_class_are_named_not_dropped(classes):
    """One folder per year in a class, one picture beside the classes; hidden files stay unmentioned."""
    (one, *_) = classes.iterdir()
    (one / "2023").mkdir()
    source = next(file for file in one.iterdir() if file.is_file())
    for place in (one / "2023" / "a.png", classes / "loose.png", one / "._b.png"):
        place.write_bytes(source.read_bytes())
    found = survey(classes)
    misplaced = "is not directly in a folder of its class"
    assert found.skipped == {f"{one.name}/2023/a.png": misplaced, "loose.png": misplaced}
