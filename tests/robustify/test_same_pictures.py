"""A run whose pictures have changed is refused with what changed; the same pictures are carried on with."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tests_tiny
from PIL import Image

from meada.errors import MeadaError
from meada.robustify import pipeline, robustify
from meada.robustify.same_pictures import same_pictures

Resume = Callable[[], list[str]]


class Stop(Exception):
    pass


@pytest.fixture
def resume(photos: Path, elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, single: None) -> Resume:
    """Plan a run in ``out``, which stops before its first stage; later calls resume it and return what was said."""

    def stop(*_: object) -> None:
        raise Stop

    monkeypatch.setattr(pipeline, "carry_out", stop)

    def call() -> list[str]:
        said: list[str] = []
        how: dict[str, Any] = {"network": f"{tests_tiny.__file__}:tiny", "side": 32, "settings": ["steps=4"]}
        with pytest.raises(Stop):
            robustify(photos, tmp_path / "out", test=elsewhere, say=said.append, **how)
        return said

    call()
    return call


def paint(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    pixels = np.random.default_rng(sum(map(ord, path.name))).integers(0, 256, (40, 36, 3), np.uint8)
    Image.fromarray(pixels).save(path)


def swap(root: Path) -> None:
    for before, after in (("red", "old"), ("blue", "red"), ("old", "blue")):
        (root / before).rename(root / after)


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "five more": (lambda root: [paint(root / f"photos/red/new{k}.png") for k in range(5)], "--data .*, got 5 more"),
    "two fewer": (lambda root: [(root / f"photos/red/{k}.png").unlink() for k in (0, 2)], "--data .*, got 2 fewer"),
    "a new class": (lambda root: [paint(root / f"photos/teal/{k}.png") for k in range(3)], "--data .*, got 3 more"),
    "swapped classes": (lambda root: swap(root / "photos"), r"--data .*, got others \(first: blue/0.png\)"),
    "other pixels": (lambda root: paint(root / "photos/red/4.png"), r"--data .*, got others \(first: red/4.png\)"),
    "a new name": (
        lambda root: (root / "photos/red/4.png").rename(root / "photos/red/44.png"),
        r"--data .*, got others \(first: red/44.png\)",
    ),
    "a test": (lambda root: paint(root / "elsewhere/red/9.png"), "--test elsewhere .*, got 1 more"),
    "a test's class": (lambda root: shutil.rmtree(root / "elsewhere/red"), "--test elsewhere .*, got 4 fewer"),
    "a test's labels": (lambda root: swap(root / "elsewhere"), r"--test elsewhere .*, got others \(first: blue/0.png"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_other_pictures_are_refused_and_the_old_ones_are_resumed(resume, tmp_path, name):
    change, sentence = CHANGES[name]
    for folder in ("photos", "elsewhere"):
        shutil.copytree(tmp_path / folder, tmp_path / "kept" / folder)
    plan = (tmp_path / "out" / "plan.json").read_bytes()
    change(tmp_path)
    with pytest.raises(MeadaError, match=f"{sentence}.*: give another --out") as error:
        resume()
    assert f"must hold the pictures that {tmp_path / 'out'} was begun with" in str(error.value)
    assert (tmp_path / "out" / "plan.json").read_bytes() == plan
    for folder in ("photos", "elsewhere"):
        shutil.rmtree(tmp_path / folder)
        shutil.copytree(tmp_path / "kept" / folder, tmp_path / folder)
        (tmp_path / folder / "red" / "0.png").touch()  # another time alone changes nothing
    assert resume() == [f"resuming {tmp_path / 'out'}"]


def test_another_split_of_the_same_pictures_is_refused():
    held = {"data": "0000000011111111", "data (held out)": "00000000"}
    now = {"data": {"a": "00000000", "b": "11111111"}, "data (held out)": {"b": "11111111"}}
    with pytest.raises(MeadaError, match=r"--data \(held out\) must hold .* got others \(first: b\)"):
        same_pictures(now, held, Path("out"))
    with pytest.raises(MeadaError, match="--test far must hold .* got 1 fewer"):
        same_pictures({}, {"test far": "00000000"}, Path("out"))
