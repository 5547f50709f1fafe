"""Any tree DOMAIN/CLASS/picture: who trains, who chooses, who is met, and every fault by name."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from meada.datasets import DATASETS
from meada.datasets.domains import PICTURES, domains, pacs, read_list
from meada.errors import MeadaError

CLASSES = ("dog", "elephant", "giraffe", "guitar", "horse", "house", "person")


def shade(domain: int, label: int, number: int) -> int:
    """One grey for each picture of the tree, so that a row says where it comes from."""
    return 60 * domain + 7 * label + number


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """PACS in small: 4 domains of 7 classes of 4 pictures, the last of each class in crossval."""
    folder = tmp_path / "data" / "pacs"
    (folder / "splits").mkdir(parents=True)
    for d, domain in enumerate(PICTURES):
        lists: dict[str, list[str]] = {"train": [], "crossval": [], "test": []}
        for k, name in enumerate(CLASSES):
            home = folder / "images" / domain / name
            home.mkdir(parents=True)
            for n in range(4):
                ending = "png" if domain == "sketch" else "jpg"
                Image.new("RGB", (9, 9), (shade(d, k, n),) * 3).save(home / f"{n}.{ending}")
                line = f"{domain}/{name}/{n}.{ending} {k + 1}\n"
                lists["crossval" if n == 3 else "train"].append(line)
                lists["test"].append(line)
        for split, lines in lists.items():
            (folder / "splits" / f"{domain}_{split}_kfold.txt").write_text("".join(lines))
    return tmp_path / "data"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEADA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def shades(samples) -> list[int]:
    return samples.images[:, 0, 0, 0].tolist()


def test_leave_one_domain_out_by_the_published_lists(root):
    task = pacs(targets=["cartoon"], root=root, side=4)
    assert task.classes == CLASSES and task.sources == ("art_painting", "photo", "sketch")
    assert (len(task.train), len(task.validation)) == (3 * 21, 3 * 7)
    assert {name: len(s) for name, s in task.targets.items()} == {"cartoon": 28}
    for part, numbers in ((task.train, range(3)), (task.validation, [3])):
        want = [shade(d, k, n) for d in (0, 2, 3) for k in range(7) for n in numbers]
        assert shades(part) == pytest.approx(want, abs=2)  # jpeg rounds
        assert part.domains is not None
        assert part.domains.tolist() == [d for d in range(3) for _ in range(7 * len(numbers))]


def test_labels_of_the_lists_run_from_one_and_ours_from_nought(root):
    task = pacs(targets=["sketch"], root=root, side=4)
    assert task.train.labels.unique().tolist() == list(range(7))
    for part in (task.train, task.validation, task.targets["sketch"]):
        of_shade = torch.tensor([s % 60 // 7 for s in shades(part)])
        near = (of_shade - part.labels).abs()
        assert near.max() <= 1 and (near == 0).float().mean() > 0.8  # by the pixels themselves
    exact = [s % 60 // 7 for s in shades(task.targets["sketch"])]  # png: no rounding
    assert task.targets["sketch"].labels.tolist() == exact


def test_single_source_meets_all_the_others(root):
    task = pacs(sources=["photo"], root=root, side=4)
    assert task.sources == ("photo",) and len(task.train) == 21
    assert list(task.targets) == ["art_painting", "cartoon", "sketch"]


def test_fewer_of_each_domain_are_spread_over_its_classes(root):
    task = pacs(targets=["sketch"], root=root, side=4, per_domain=7)
    assert len(task.train) == 21 and task.train.labels.bincount().tolist() == [3] * 7
    assert len(task.validation) == 21


def test_the_record_says_how_much_of_it_is_there(root):
    told = pacs(targets=["sketch"], root=root, side=4).provenance
    assert "28 pictures to test on" in told["sketch"]
    assert "21 pictures to train on, 7 held out, by the published lists" in told["photo"]
    assert "28 of the 1,670 published" in told["photo"]


def test_a_tree_without_lists_is_split_by_class_and_seed(root):
    folder = str(root / "pacs" / "images")
    parts = {}
    for seed in (0, 0, 1):
        task = domains(folder=folder, targets=["sketch"], side=4, held_out=0.25, seed=seed)
        assert task.validation.labels.bincount().tolist() == [3] * 7
        assert task.train.labels.bincount().tolist() == [9] * 7
        assert not set(shades(task.train)) & set(shades(task.validation))
        parts.setdefault(seed, []).append(shades(task.validation))
    assert parts[0][0] == parts[0][1] != parts[1][0]
    assert len(task.targets["sketch"]) == 28


def test_somebodys_own_tree_needs_no_new_code(tmp_path):
    for domain in ("day", "night"):
        for name in ("cat", "newt", "owl"):
            (tmp_path / "mine" / domain / name).mkdir(parents=True)
            for n in range(3):
                path = tmp_path / "mine" / domain / name / f"{n}.PNG"
                Image.fromarray(np.full((5, 8), n, np.uint8)).save(path)
    task = DATASETS["domains"](folder=str(tmp_path / "mine"), sources=["day"], side=6)
    assert task.classes == ("cat", "newt", "owl") and list(task.targets) == ["night"]
    assert task.train.images.shape == (6, 3, 6, 6) and len(task.validation) == 3


def test_every_fault_is_named_before_anything_is_trained(root):
    pictures, splits = root / "pacs" / "images", root / "pacs" / "splits"
    (pictures / "photo" / "dog" / "0.jpg").write_bytes(b"\xff\xd8 cut short")
    Image.new("CMYK", (9, 9)).save(pictures / "cartoon" / "horse" / "1.jpg")
    Image.fromarray(np.zeros((9, 9), np.uint16)).save(pictures / "sketch" / "house" / "2.png")
    (pictures / "art_painting" / "person" / "0.jpg").unlink()
    for path in (pictures / "photo" / "guitar").iterdir():
        path.unlink()
    train = splits / "photo_train_kfold.txt"
    train.write_text("".join(x for x in train.open() if "guitar" not in x))
    with pytest.raises(MeadaError) as caught:
        pacs(targets=["sketch"], root=root, side=4)
    text = str(caught.value)
    assert "has 6 faults" in text and "\n" not in text
    assert "photo/guitar holds no picture" in text
    assert "art_painting_train_kfold.txt names art_painting/person/0.jpg, which is not" in text
    assert "photo_crossval_kfold.txt names photo/guitar/3.jpg, which is not there" in text
    assert "cartoon/horse/1.jpg is CMYK" in text and "photo/dog/0.jpg is not a readable picture" in text


@pytest.mark.parametrize("split, faulty", [("train", True), ("crossval", False)])
def test_a_train_list_without_a_class_is_named(root, split, faulty):
    path = root / "pacs" / "splits" / f"photo_{split}_kfold.txt"
    path.write_text("".join(x for x in path.open() if "guitar" not in x))
    if faulty:
        with pytest.raises(MeadaError, match=r"photo_train_kfold.txt names no picture of guitar"):
            pacs(targets=["sketch"], root=root, side=4)
    else:
        assert len(pacs(targets=["sketch"], root=root, side=4).validation) == 20


@pytest.mark.parametrize(
    "line, sentence",
    [
        ("photo/dog/0.jpg 0", "a label from 1 to 7"),
        ("photo/dog/0.jpg 8", "a label from 1 to 7"),
        ("photo/dog/0.jpg", "DOMAIN/CLASS/NAME and a label"),
        ("dog/0.jpg 1", "DOMAIN/CLASS/NAME"),
        ("photo/dog/0.jpg 2", "line 1 labels photo/dog/0.jpg as 2, which stands for elephant"),
    ],
)
def test_a_bad_line_of_a_list_is_named(tmp_path, line, sentence):
    (tmp_path / "l.txt").write_text(f"{line}\n\n")
    entries, faults = read_list(tmp_path / "l.txt", CLASSES)
    assert entries == [] and len(faults) == 1 and sentence in faults[0]


def test_other_faults_of_lists(root):
    splits = root / "pacs" / "splits"
    (splits / "photo_train_kfold.txt").unlink()
    (splits / "cartoon_train_kfold.txt").write_text("photo/dog/0.jpg 1\n")
    crossval = (splits / "art_painting_crossval_kfold.txt").read_text()
    with (splits / "art_painting_train_kfold.txt").open("a") as file:
        file.write(crossval.splitlines()[0])
    with pytest.raises(MeadaError) as caught:
        pacs(targets=["sketch"], root=root, side=4)
    for sentence in (
        "the list photo_train_kfold.txt is missing",
        "cartoon_train_kfold.txt names photo/dog/0.jpg of another domain",
        "art_painting/dog/3.jpg is in the train list and in the crossval list",
    ):
        assert sentence in str(caught.value)


@pytest.mark.parametrize(
    "settings, sentence",
    [
        ({}, "sources or targets must be named, of art_painting"),
        ({"targets": ["sktch"]}, "unknown domain 'sktch': did you mean 'sketch'"),
        ({"targets": ["photo"], "sources": ["photo"]}, "must be a source or a target, got 'photo' as both"),
        ({"targets": list(PICTURES)}, "sources and targets must both have a domain"),
        ({"targets": ["photo"], "side": 0}, "side must be 1 or more, got 0"),
        ({"targets": ["photo"], "per_domain": 0}, "per_domain must be 1 or more, got 0"),
    ],
)
def test_a_request_that_cannot_be_met(root, settings, sentence):
    with pytest.raises(MeadaError, match=sentence):
        pacs(root=root, **settings)


def test_a_missing_tree_says_where_it_can_be_had(tmp_path):
    with pytest.raises(MeadaError, match=r"pacs/images is missing; .*domaingeneralization"):
        pacs(targets=["photo"], root=tmp_path)
    with pytest.raises(MeadaError, match="nowhere must be a folder"):
        domains(folder="nowhere", targets=["photo"], root=tmp_path)
    with pytest.raises(MeadaError, match="must hold DOMAIN/CLASS folders"):
        domains(folder=str(tmp_path), targets=["photo"])


def test_the_published_sample(real_data, tmp_path):
    """Numbers of the lists themselves; decoding 1,500 of its pictures takes a few seconds."""
    task = pacs(sources=["photo"], targets=["art_painting"], root=real_data, cache=tmp_path)
    lists = {
        split: (real_data / "pacs" / "splits" / f"{name}_{split}_kfold.txt").read_text().splitlines()
        for name, split in (("photo", "train"), ("photo", "crossval"), ("art_painting", "test"))
    }
    parts = {"train": task.train, "crossval": task.validation, "test": task.targets["art_painting"]}
    for split, lines in lists.items():
        assert parts[split].labels.tolist() == [int(line.split()[1]) - 1 for line in lines]
        assert parts[split].images.shape[1:] == (3, 224, 224)
    assert task.classes == CLASSES
