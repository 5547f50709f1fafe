"""``meada.load``: a module from pixels to logits, and predictions of pictures of every kind."""

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from typer.testing import CliRunner

import meada
from meada.cli.main import app
from meada.deploy.model import method_folder, save_model
from meada.deploy.predictions import prepared
from meada.errors import MeadaError
from meada.runs.network import build_network
from meada.runs.recipe import resolve

pytestmark = pytest.mark.usefixtures("single")
CLASSES = ("cat", "dog", "cow")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model file with a threshold, and three pictures of its own size."""
    torch.set_default_dtype(torch.float32)
    home = tmp_path_factory.mktemp("load")
    recipe = resolve({
        "name": "x", "network": {"name": "lenet"}, "method": {"name": "erm"}, "data": {"name": "embedded"},
    })  # fmt: skip
    net = build_network(recipe, 3)
    save_model(home / "model.safetensors", net, recipe, CLASSES, {"abstain_entropy": "0.5"})
    (home / "photos").mkdir()
    rng = np.random.default_rng(3)
    for number in range(3):
        Image.fromarray(rng.integers(0, 256, (32, 32, 3), np.uint8)).save(home / "photos" / f"{number}.png")
    return home


def test_it_is_a_module_in_eval_mode(folder):
    model = meada.load(folder / "model.safetensors")
    assert isinstance(model, nn.Module) and not model.training and model.classes == CLASSES
    x = torch.rand(2, 3, 32, 32)
    assert torch.equal(model(x), model.net(x)) and model(x).shape == (2, 3)
    assert not model.net.training and model.abstain_entropy == 0.5


def test_the_run_inside_a_robustify_folder_of_version_0_1_is_found(tmp_path):
    """Its model.safetensors has no recipe of its own; meada's folder has, and ERM's is next to it."""
    for name in ("erm", "meada"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "recipe.toml").touch()
    assert method_folder(tmp_path / "meada").path == tmp_path / "meada"
    (tmp_path / "plan.json").touch()
    assert method_folder(tmp_path).path == tmp_path / "meada"
    (tmp_path / "meada" / "recipe.toml").unlink()
    assert method_folder(tmp_path) is None


def test_every_kind_of_picture_gives_the_same(folder):
    model, path = meada.load(str(folder / "model.safetensors")), folder / "photos" / "0.png"
    pixels = np.asarray(Image.open(path))
    tensor = torch.from_numpy(pixels.copy()).permute(2, 0, 1)
    kinds = [path, str(path), Image.open(path), pixels, pixels / np.float32(255), tensor, tensor / 255, tensor[None]]
    (wanted,) = model.predict(path)
    for kind in kinds:
        (label, probability, entropy) = model.predict(kind)[0]
        assert (label, entropy) == (wanted.label, pytest.approx(wanted.entropy, abs=1e-5)), type(kind)
        assert probability == pytest.approx(wanted.probability, abs=1e-5)
    p = model(tensor[None] / 255).softmax(-1)[0].double()
    assert wanted.probability == pytest.approx(float(p.max()), abs=1e-5)
    assert wanted.entropy == pytest.approx(-sum(float(q) * math.log(q) for q in p), abs=1e-5)
    assert len(model.predict([path, pixels, tensor])) == 3
    assert len(model.predict(folder / "photos")) == len(model.predict(f"{folder}/photos/*.png")) == 3


def test_a_folder_is_scored_by_the_models_own_classes_and_size(folder, tmp_path, monkeypatch):
    """The model's classes are cat, dog, cow; the folder has no cat, and its names sort as cow, dog."""
    monkeypatch.setenv("MEADA_CACHE", str(tmp_path / "cache"))
    model, rng = meada.load(folder / "model.safetensors"), np.random.default_rng(1)
    for name in ("cow", "dog"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for k in range(3):
            Image.fromarray(rng.integers(0, 256, (48, 40, 3), np.uint8)).save(tmp_path / "photos" / name / f"{k}.png")
    images = torch.stack(list(prepared(sorted(tmp_path.rglob("*.png")), 32)))
    scores = meada.evaluate(model, tmp_path / "photos")
    assert scores == pytest.approx(meada.evaluate(model, (images, [2, 2, 2, 1, 1, 1])))
    assert meada.evaluate(model, {"photos": tmp_path / "photos"}, side=32) == {"photos": scores}
    with pytest.raises(MeadaError, match=r"does not take images of shape \(3, 64, 64\)"):  # lenet: 32 alone
        meada.evaluate(model, tmp_path / "photos", side=64)
    (tmp_path / "photos" / "dog").rename(tmp_path / "photos" / "pig")
    with pytest.raises(MeadaError, match="photos must have no classes but cat, dog, cow, got 'pig'"):
        meada.evaluate(model, tmp_path / "photos")


def test_a_turned_picture_is_turned_back_whether_given_or_read(folder, tmp_path):
    model, exif = meada.load(folder / "model.safetensors"), Image.Exif()
    exif[0x0112] = 6  # turn right to see it upright
    Image.open(folder / "photos" / "0.png").save(tmp_path / "turned.png", exif=exif)
    by_path, given = (model.predict(one)[0] for one in (tmp_path / "turned.png", Image.open(tmp_path / "turned.png")))
    assert given == by_path != model.predict(folder / "photos" / "0.png")[0]
    broken = Image.new("RGB", (4, 4))
    broken.info["exif"] = b"Exif\0\0garbage"
    with pytest.raises(MeadaError, match="a picture must have readable EXIF data, got not a TIFF file"):
        model.predict(broken)


def test_another_size_is_resized_as_in_training(folder):
    model = meada.load(folder / "model.safetensors")
    large = Image.open(folder / "photos" / "0.png").resize((96, 64), Image.Resampling.BICUBIC)
    by_pillow, by_torch = model.predict(large)[0], model.predict(np.asarray(large))[0]
    assert by_pillow.entropy == pytest.approx(by_torch.entropy, abs=0.02)


@pytest.mark.parametrize(
    "pictures, sentence",
    [
        ("nowhere.png", "nowhere.png must be a picture file, got nothing there"),
        ("*.nothing", "must match files, got none"),
        (3, "pictures must be paths, Pillow images, arrays or tensors, got int"),
        (torch.rand(1, 32, 32), r"a tensor must be \(3, H, W\)"),
        (torch.rand(1, 32, 32), r"got \(1, 32, 32\): grey\? use images.repeat_interleave\(3, -3\)"),
        (torch.rand(3, 32, 32).to_sparse(), "a tensor must be dense, got torch.sparse_coo"),
        (torch.rand(3, 32, 32, device="meta"), "a tensor must be dense, got a meta tensor"),
        (np.empty((32, 32, 3), dtype=object), "pixels must be uint8 or floats in .0, 1., got object"),
        (torch.full((3, 32, 32), 255.0), r"pixels must lie in \[0, 1\], got 255 to 255"),
        (torch.full((3, 32, 32), math.nan), "pixels must lie in"),
        (torch.zeros(3, 32, 32, dtype=torch.long), "pixels must be uint8 or floats"),
        (np.zeros((32, 32)), r"an array must be \(H, W, 3\)"),
    ],
)
def test_what_is_no_picture_is_a_sentence(folder, pictures, sentence):
    with pytest.raises(MeadaError, match=sentence):
        meada.load(folder / "model.safetensors").predict(pictures)


def test_the_verb_takes_patterns_and_writes_csv_and_json(folder, tmp_path):
    words = [
        "predict",
        folder / "model.safetensors",
        f"{folder}/photos/[01].png",
        folder / "photos" / "2.png",
        "--top-k",
        2,
    ]
    got = CliRunner().invoke(app, [str(w) for w in [*words, "--csv", tmp_path / "p.csv", "--json"]])
    assert got.exception is None, got.exception
    told, rows = json.loads(got.output), list(csv.DictReader((tmp_path / "p.csv").open()))
    assert (
        [Path(one["file"]).name for one in told] == ["0.png", "1.png", "2.png"] == [Path(r["file"]).name for r in rows]
    )
    for one, row in zip(told, rows, strict=True):
        assert [t["probability"] for t in one["top"]] == sorted((t["probability"] for t in one["top"]), reverse=True)
        assert row["label"] == one["label"] and row["label_2"] == one["top"][1]["label"]
        assert one["abstain"] is (one["entropy"] > 0.5) is (row["abstain"] == "true")


def test_missing_files_are_named_and_the_others_predicted(folder, tmp_path):
    words = ["predict", folder / "model.safetensors", folder / "photos" / "0.png", tmp_path / "gone.png", "--json"]
    got = CliRunner().invoke(app, [str(w) for w in words])
    good, bad = json.loads(got.output)
    assert good["label"] in CLASSES and "must be a picture file, got nothing there" in bad["error"]
    assert isinstance(got.exception, MeadaError) and "gone.png must be a picture file" in str(got.exception)


def test_big_endian_arrays_are_taken(folder):
    model = meada.load(folder / "model.safetensors")
    image = np.random.default_rng(0).random((20, 24, 3), np.float32)
    assert model.predict(image.astype(">f4")) == model.predict(image)
