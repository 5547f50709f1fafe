"""An adversarial set as files: the model's own ascent, by class, rounded to 8 bits."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from meada.deploy.adversarial import samples_of, write_adversarial
from meada.deploy.model import open_model, save_model
from meada.errors import MeadaError
from meada.maximise import perturb
from meada.runs.network import build_network
from meada.runs.recipe import resolve

NETWORK = """
from torch import nn

def tiny(num_classes):
    last = nn.Linear(6, num_classes)
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 28 * 28, 6), nn.Tanh(), last)
"""
ASCENT = {"beta": 2.0, "gamma": 0.01, "step_size": 2.0, "steps": 3}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, single: None) -> Path:
    """Four pictures of each of two classes, and a model of them."""
    monkeypatch.setenv("MEADA_CACHE", str(tmp_path / "cache"))
    (tmp_path / "net.py").write_text(NETWORK)
    rng = np.random.default_rng(2)
    for name in ("cat", "dog"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(4):
            pixels = rng.integers(60, 200, (28, 28, 3), np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / name / f"{i}.png")
    for method, settings in (("meada", ASCENT), ("erm", {})):
        recipe = resolve({
            "name": "x", "network": {"name": f"{tmp_path / 'net.py'}:tiny"},
            "data": {"name": "folder", "path": str(tmp_path / "photos"), "side": 28},
            "method": {"name": method, **settings},
        }, trust=[f"{tmp_path / 'net.py'}:tiny"])  # fmt: skip
        save_model(tmp_path / f"{method}.safetensors", build_network(recipe, 2), recipe, ("cat", "dog"))
    return tmp_path


def test_files_are_the_ascent_of_the_model(folder):
    model = open_model(folder / "meada.safetensors", [f"{folder}/net.py:tiny"])
    samples = samples_of(model, folder / "photos", None)
    written = write_adversarial(model, samples, folder / "out", source="photos")
    assert written["images"] == 8 and written["classes"] == 2 and written["levels"]["largest"] > 1
    expected = perturb(model.net, samples.images.float() / 255, samples.labels, **ASCENT)
    for row, label in enumerate(samples.labels.tolist()):
        path = folder / "out" / ("cat", "dog")[label] / f"{row:06d}.png"
        got = torch.from_numpy(np.array(Image.open(path))).permute(2, 0, 1)
        assert (got.float() - 255 * expected[row]).abs().max() < 0.51  # rounded, not truncated
    assert json.loads((folder / "out" / "perturb.json").read_text())["method"]["beta"] == 2.0


def test_without_pictures_it_is_what_the_run_learnt_from(folder):
    model = open_model(folder / "meada.safetensors", [f"{folder}/net.py:tiny"])
    assert len(samples_of(model, None, None)) == 6  # one of each four is held out
    few = samples_of(model, folder / "photos", 4)
    assert few.labels.tolist() == [0, 0, 1, 1]


def test_classes_whose_names_become_one_folder_name_keep_a_folder_each(folder):
    model = open_model(folder / "meada.safetensors", [f"{folder}/net.py:tiny"])
    model.classes = ("a/b", "a_b")
    written = write_adversarial(model, samples_of(model, None, None), folder / "out", source="photos")
    assert written["images"] == 6 and sorted(p.name for p in (folder / "out").iterdir() if p.is_dir()) == [
        "0_a_b",
        "1_a_b",
    ]


def test_what_cannot_be_done_is_a_sentence(folder):
    erm, model = (open_model(folder / f"{m}.safetensors", [f"{folder}/net.py:tiny"]) for m in ("erm", "meada"))
    samples = samples_of(model, folder / "photos", None)
    with pytest.raises(MeadaError, match="the method of the run must make images, as ada and meada do, got 'erm'"):
        write_adversarial(erm, samples, folder / "out", source="")
    with pytest.raises(MeadaError, match="--out must be a new or empty folder"):
        write_adversarial(model, samples, folder / "photos", source="")
    (folder / "strange" / "cow").mkdir(parents=True)
    Image.new("RGB", (9, 9)).save(folder / "strange" / "cow" / "a.png")
    with pytest.raises(MeadaError, match="must have some of the classes cat, dog, got cow"):
        samples_of(model, folder / "strange", None)
