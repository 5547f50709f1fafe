"""Copies, groups and near-copies: none may lie on both sides of the split unseen."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance

from meada.datasets.folder import folder
from meada.datasets.pictures.split import split, units
from meada.datasets.pictures.survey import Survey, near, survey
from meada.errors import MeadaError
from meada.streams import stream


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEADA_CACHE", str(tmp_path / "cache"))


def texture(seed: int, side: int = 48) -> Image.Image:
    """A smooth picture of its own, which survives JPEG."""
    small = np.random.default_rng(seed).integers(0, 256, (6, 6, 3), np.uint8)
    return Image.fromarray(small).resize((side, side), Image.Resampling.BICUBIC)


def put(path: Path, image: Image.Image, **how: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path, **how)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    for i in range(20):
        put(tmp_path / "photos" / ("cat" if i < 12 else "dog") / f"{i:02}.png", texture(i))
    return tmp_path / "photos"


def sides(own: Survey, seed: int = 0, held_out: float = 0.2) -> tuple[set[str], set[str]]:
    fit, kept = split(own, held_out=held_out, seed=seed)
    assert {p.file for p in fit} | {p.file for p in kept} == {p.file for p in own.pictures}
    return {p.file for p in fit}, {p.file for p in kept}


@pytest.mark.parametrize("seed", [0, 3])
def test_without_copies_and_groups_each_class_has_its_own_draw(photos, seed):
    """As ever: the first fifth of a permutation of the class's files, whatever the other classes hold."""
    own = survey(photos)
    expected = set()
    for label, n, cut in (("cat", 12, 2), ("dog", 8, 2)):
        files = [p.file for p in own.pictures if p.label == label]
        order = torch.randperm(n, generator=stream("split", f"{seed} photos {label}")).tolist()
        expected |= {files[i] for i in order[:cut]}
    fit, kept = sides(own, seed)
    assert kept == expected and not fit & kept
    assert [p.file for p in split(own, held_out=0.2, seed=seed)[0]] == sorted(fit)


def test_copies_by_other_names_and_formats_stay_together_for_every_seed(photos):
    for i in range(6):
        put(photos / "cat" / f"copy{i}.bmp", texture(i))
    put(photos / "dog" / "also.png", texture(0))
    own = survey(photos)
    assert "7 of 27 pictures are copies, pixel by pixel, of others (cat/00.png = cat/copy0.bmp" in own.remarks[0]
    assert (
        "copies of 1 of these pictures are in several classes, such as cat/00.png in 'cat' and dog/also.png"
        in (own.remarks[1])
    )
    for seed in range(10):
        fit, kept = sides(own, seed)
        for i in range(6):
            assert (f"cat/{i:02}.png" in kept) == (f"cat/copy{i}.bmp" in kept)
        assert ("cat/00.png" in kept) == ("dog/also.png" in kept)
        assert 3 <= len(kept) <= 8 and len(fit) >= 19


def test_pixels_that_differ_in_one_level_are_no_copy(photos):
    image = texture(0)
    image.putpixel((0, 0), tuple(255 - value for value in image.getpixel((0, 0))))
    put(photos / "cat" / "other.png", image)
    assert not survey(photos).remarks


def test_a_turned_photograph_is_a_copy_of_what_it_shows(photos):
    exif = Image.Exif()
    exif[0x0112] = 6
    put(photos / "cat" / "turned.png", texture(1).transpose(Image.Transpose.ROTATE_90), exif=exif)
    assert "1 of 21 pictures are copies" in survey(photos).remarks[0]


def test_a_test_of_renamed_training_pictures_is_refused(photos, tmp_path):
    put(tmp_path / "far" / "cat" / "new.png", texture(100))
    put(tmp_path / "far" / "cat" / "renamed.bmp", texture(3))
    put(tmp_path / "clean" / "cat" / "new.png", texture(101))
    tests = [str(tmp_path / name) for name in ("clean", "far")]
    with pytest.raises(MeadaError, match=r"got 1 of the same pixels, such as cat/renamed.bmp, a copy of .*cat/03.png"):
        folder(path=str(photos), tests=tests, side=8)


@pytest.fixture
def frames(tmp_path: Path) -> Path:
    """Eight objects of each of two classes, ten frames of each."""
    for i in range(160):
        label, thing = ("cup", "pot")[i // 80], i // 10
        put(tmp_path / "frames" / label / f"thing{thing:02}_{i % 10}.png", texture(i))
    return tmp_path / "frames"


@pytest.mark.parametrize("seed", range(5))
def test_groups_by_a_pattern_are_never_divided_and_classes_keep_their_share(frames, seed):
    own = survey(frames, group=r"thing(\d+)_")
    fit, kept = sides(own, seed)
    thing = lambda file: file.split("_")[0]
    assert not {thing(file) for file in fit} & {thing(file) for file in kept}
    assert Counter(file.split("/")[0] for file in kept) == {"cup": 20, "pot": 20}  # two objects of each


def test_groups_are_drawn_by_the_seed(frames):
    own = survey(frames, group=r"thing(\d+)_")
    assert len({frozenset(sides(own, seed)[1]) for seed in range(5)}) > 1


def test_groups_by_a_column_across_classes(tmp_path):
    """Patients with pictures of both classes: no patient is on both sides, both classes on each."""
    lines = ["path,label,patient"]
    for i in range(60):
        put(tmp_path / "scans" / f"{i}.png", texture(i))
        lines.append(f"{i}.png,{('ill', 'well')[i % 2]},p{i // 6}")
    (tmp_path / "scans" / "list.csv").write_text("\n".join(lines))
    own = survey(tmp_path / "scans" / "list.csv", group="patient")
    for seed in range(5):
        fit, kept = split(own, held_out=0.2, seed=seed)
        assert not {p.group for p in fit} & {p.group for p in kept}
        assert {p.label for p in fit} == {p.label for p in kept} == {"ill", "well"} and len(kept) == 12


def test_large_groups_still_leave_something_to_hold_out(tmp_path):
    for i in range(20):
        put(tmp_path / "two" / ("a", "b")[i % 2] / f"object{i // 2 % 2}_{i}.png", texture(i))
    fit, kept = sides(survey(tmp_path / "two", group=r"(./object\d)"))
    assert len(kept) == 10 and {file[:9] for file in kept} & {file[:9] for file in fit} == set()


@pytest.mark.parametrize(
    "group, sentence",
    [
        ("(", "must be a regular expression, got '\\('"),
        ("thing", r"must be a regular expression with a group \(...\), got 'thing'"),
        (r"cup/thing(\d+)", "finds none in 80 of 160, such as pot/"),
        (r"(.*?)/", ""),
    ],
)
def test_a_bad_group_is_one_sentence(frames, group, sentence):
    if not sentence:  # one group per class: both sides cannot have both
        with pytest.raises(MeadaError, match="must have two pictures of a class .* that belong to different groups"):
            folder(path=str(frames), group=group, side=8)
        return
    with pytest.raises(MeadaError, match=sentence):
        folder(path=str(frames), group=group, side=8)


def test_all_pictures_the_same_are_refused(tmp_path):
    for name in ("a/0", "a/1", "b/0", "b/1"):
        put(tmp_path / "same" / f"{name}.png", texture(0))
    with pytest.raises(MeadaError, match="must hold pictures that differ, got 4 copies of one picture"):
        folder(path=str(tmp_path / "same"), side=8)


def test_near_copies_on_both_sides_are_counted_with_an_example(photos):
    assert "warnings" not in folder(path=str(photos), side=8).provenance
    for i in range(20):  # the same pictures, brighter, smaller and saved as JPEG
        image = ImageEnhance.Brightness(texture(i)).enhance(1.1).resize((40, 40))
        put(photos / ("cat" if i < 12 else "dog") / f"{i:02}_again.jpg", image, quality=80)
    task = folder(path=str(photos), side=8)
    warning = task.provenance["warnings"]
    held = len(task.validation)
    assert f"of {held} held-out pictures look nearly the same as one to train on, such as" in warning
    first, second = warning.split("such as ")[1].split(":")[0].split(" and ")
    assert first[:6] == second[:6]
    whole = folder(path=str(photos), side=8, group=r"(\d\d)(_again)?\.")
    assert "warnings" not in whole.provenance


def test_near_copies_in_a_test_and_groups_in_common_are_warned_of(photos, tmp_path):
    put(tmp_path / "far" / "cat" / "05.jpg", texture(5), quality=70)
    put(tmp_path / "far" / "dog" / "06.jpg", texture(6), quality=70)  # of another class: no such leak
    put(tmp_path / "far" / "dog" / "77.jpg", texture(77), quality=70)
    task = folder(path=str(photos), tests=[str(tmp_path / "far")], side=8, group=r"(\d\d)\.")
    warning = task.provenance["warnings"]
    assert "1 of 3 test 'far' pictures look nearly the same" in warning and "cat/05.jpg and cat/05.png" in warning
    assert "test 'far' has 2 groups of the data, such as '05'" in warning


def test_flat_pictures_are_not_called_near(tmp_path):
    flat = "0" * 16
    assert near([flat], [flat]) == []
    few = near(["00000000000003ff"] * 600, ["00000000000000ff", "ff" * 8])  # several blocks
    assert few == [(i, 0) for i in range(600)]
    assert near(["00000000000007ff"], ["00000000000000ff"]) == []  # three bits differ


def test_many_are_compared_at_once():
    rng = np.random.default_rng(0)
    those = [rng.bytes(8).hex() for _ in range(40_000)]
    these = [rng.bytes(8).hex() for _ in range(2_000)]
    these[17] = those[123]
    assert near(these, those) == [(17, 123)]


def test_copies_join_groups_and_groups_join_each_other(tmp_path):
    """Things 0, 1 and 2 share a picture each with the next: one unit, whichever order they are read in."""
    shared = {("00", 1): 7, ("01", 0): 7, ("01", 1): 8, ("02", 0): 8}  # a picture of one is a copy of another's
    for number in range(8):
        for frame in range(3):
            thing = f"{number:02}"
            image = texture(shared.get((thing, frame), 100 + 10 * number + frame))
            put(tmp_path / "things" / ("cup", "pot")[number % 2] / f"thing{thing}_{frame}.png", image)
    own = survey(tmp_path / "things", group=r"thing(\d+)_")
    assert sorted(len(unit) for unit in units(own)) == [3] * 5 + [9]
    for seed in range(8):
        fit, kept = sides(own, seed)
        chained = [{file for file in side if file[9:11] in ("00", "01", "02")} for side in (fit, kept)]
        assert not all(chained)


def test_a_test_folder_without_some_classes_has_the_numbers_of_the_training_classes(photos, tmp_path):
    for i in range(4):
        put(tmp_path / "photos" / "ape" / f"{i}.png", texture(200 + i))
        put(tmp_path / "far" / ("dog", "cat")[i % 2] / f"{i}.png", texture(300 + i))
    task = folder(path=str(photos), tests=[str(tmp_path / "far")], side=8)
    assert task.classes == ("ape", "cat", "dog")
    assert sorted(task.targets["far"].labels.tolist()) == [1, 1, 2, 2]
