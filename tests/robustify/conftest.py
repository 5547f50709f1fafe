"""A folder of 30 pictures in 3 colours, with every trap that a real one holds."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from tests_tiny import QUICK, WITH_BATCH_NORM

COLOURS = ("blue", "green", "red")


def coloured(folder: Path, n: int, rng: np.random.Generator) -> Path:
    """n pictures of each of three colours, jpg and png in turn."""
    for k, name in enumerate(COLOURS):
        (folder / name).mkdir(parents=True)
        for i in range(n):
            pixels = rng.integers(0, 100, (40, 36, 3), np.uint8)
            pixels[..., 2 - k] += 120
            Image.fromarray(pixels).save(folder / name / f"{i}.{'jpg' if i % 2 else 'png'}")
    return folder


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEADA_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def photos(tmp_path: Path, rng: np.random.Generator) -> Path:
    return coloured(tmp_path / "photos", 10, rng)


@pytest.fixture
def elsewhere(tmp_path: Path, rng: np.random.Generator) -> Path:
    return coloured(tmp_path / "elsewhere", 4, rng)


@pytest.fixture
def trapped(photos: Path, rng: np.random.Generator) -> Path:
    """A broken jpeg, text called .jpg, a note, a bomb and an empty class; and odd ones that count:

    grey, CMYK, 16 bits and turned by EXIF.
    """
    broken = photos / "red" / "1.jpg"
    broken.write_bytes(broken.read_bytes()[:300])
    (photos / "green" / "text.jpg").write_text("no picture at all")
    (photos / "green" / "notes.txt").write_text("taken in May")
    (photos / "empty").mkdir()
    Image.new("1", (14_000, 13_000)).save(photos / "red" / "huge.png")
    grey = rng.integers(0, 256, (30, 30), np.uint8)
    Image.fromarray(grey).save(photos / "green" / "grey.png")
    ink = Image.fromarray(rng.integers(0, 256, (30, 30, 4), np.uint8), "CMYK")
    ink.save(photos / "blue" / "cmyk.jpg")
    Image.fromarray((255 - grey).astype(np.uint16) * 257).save(photos / "blue" / "deep.png")
    turned = Image.new("RGB", (30, 60), "blue")
    turned.paste("white", (0, 0, 30, 30))
    exif = Image.Exif()
    exif[0x0112] = 6  # turn right to see it upright
    turned.save(photos / "blue" / "turned.jpg", exif=exif, quality=95)
    return photos


@pytest.fixture
def tiny(tmp_path: Path, single: None) -> dict[str, object]:
    """A small network with weights of its own, so that every stage runs."""
    (tmp_path / "net.py").write_text(WITH_BATCH_NORM)
    space: dict[str, object] = {}
    exec(WITH_BATCH_NORM, space)
    torch.manual_seed(0)
    save_file(space["tiny"](5).state_dict(), tmp_path / "w.safetensors")  # type: ignore[operator]
    return {
        "network": f"{tmp_path / 'net.py'}:tiny", "weights": tmp_path / "w.safetensors", "side": 32, "seed": 3,
        "settings": QUICK, "say": lambda text: None,
    }  # fmt: skip
