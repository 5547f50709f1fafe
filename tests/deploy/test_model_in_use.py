"""A trained model in use: it says what it is, its predictions are its own, ONNX gives the same."""

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from meada.deploy.model import open_model, save_model
from meada.deploy.predictions import Prediction, pictures_in, predict_files
from meada.errors import MeadaError
from meada.runs.recipe import resolve

NETWORK = """
from torch import nn
from meada.networks.normalise import Normalise

def tiny(num_classes):
    return nn.Sequential(
        Normalise((0.4, 0.5, 0.6), 0.2), nn.Conv2d(3, 4, 5, stride=4), nn.BatchNorm2d(4), nn.ReLU(),
        nn.Flatten(), nn.Linear(144, 8), nn.ReLU(), nn.Linear(8, num_classes),
    )
"""


def trust(model: Path) -> list[str]:
    return [f"{model.parent / 'net.py'}:tiny"]


@pytest.fixture
def model(tmp_path: Path, single: None) -> Path:
    (tmp_path / "net.py").write_text(NETWORK)
    recipe = resolve({
        "name": "robustify/meada", "network": {"name": f"{tmp_path / 'net.py'}:tiny"},
        "data": {"name": "folder", "path": "photos", "side": 28}, "method": {"name": "meada"},
    }, trust=[f"{tmp_path / 'net.py'}:tiny"])  # fmt: skip
    from meada.runs.network import build_network

    net = build_network(recipe, 3)
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):  # statistics that eval mode must use
            module.running_mean.uniform_(-1, 1)
    save_model(tmp_path / "model.safetensors", net, recipe, ("cat", "dog", "Küken"))
    return tmp_path / "model.safetensors"


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    pixels = np.random.default_rng(1).integers(0, 256, (28, 28, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "one.png")
    return tmp_path / "one.png"


def test_a_file_alone_is_enough(model):
    opened = open_model(model, trust(model))
    assert opened.classes == ("cat", "dog", "Küken") and opened.side == 28
    assert not opened.net.training and opened.recipe.method["name"] == "meada"


def test_a_prediction_is_the_softmax_and_its_entropy(model, picture):
    opened = open_model(model, trust(model))
    (said,) = predict_files(opened, [picture])
    x = torch.from_numpy(np.asarray(Image.open(picture)).transpose(2, 0, 1).copy())[None].float() / 255
    with torch.no_grad():
        p = opened.net(x).double().softmax(-1)[0]
    assert said.label == opened.classes[int(p.argmax())]
    assert said.probability == pytest.approx(float(p.max()), abs=1e-6)
    assert said.entropy == pytest.approx(-sum(float(q) * math.log(q) for q in p), abs=1e-6)


def test_a_label_is_doubted_above_the_limit_and_not_below():
    one = Prediction("x.png", (("cat", 0.9),), entropy=0.5)
    assert one.line(0.4)["abstain"] is True and one.line(0.6)["abstain"] is False and "abstain" not in one.line()


def test_an_unreadable_picture_keeps_its_place(model, picture, tmp_path):
    (tmp_path / "bad.jpg").write_text("no")
    said = predict_files(open_model(model, trust(model)), [tmp_path / "bad.jpg", picture, tmp_path / "gone.png"])
    assert [bool(one.error) for one in said] == [True, False, True]
    assert said[0].line().keys() == {"file", "error"}


def test_predictions_belong_to_their_files_and_hidden_ones_are_skipped(model, tmp_path):
    """Ten different pictures, one by one and in one call; ``._x.jpg`` is what macOS leaves beside a picture."""
    opened, home, rng = open_model(model, trust(model)), tmp_path / "many", np.random.default_rng(0)
    home.mkdir()
    for k in range(10):
        Image.fromarray(rng.integers(0, 256, (28, 28, 3), np.uint8)).save(home / f"{k}.png")
    (home / "._0.png").write_bytes(b"not a picture")
    files = pictures_in([home])
    assert [file.name for file in files] == [f"{k}.png" for k in range(10)]
    together, alone = predict_files(opened, files), [predict_files(opened, [file])[0] for file in files]
    assert [one.file for one in together] == [one.file for one in alone]
    assert [one.probability for one in together] == pytest.approx([one.probability for one in alone], abs=1e-6)
    assert len({round(one.probability, 6) for one in alone}) > 5  # they do differ
    assert opened.predict(files[0])[0].entropy == pytest.approx(alone[0].entropy, abs=1e-6)


def test_foreign_files_are_refused(tmp_path, single):
    from safetensors.torch import save_file

    save_file({"w": torch.zeros(1)}, tmp_path / "w.safetensors")
    (tmp_path / "junk.safetensors").write_bytes(b"junk")
    (tmp_path / "empty").mkdir()
    for name, sentence in (
        ("w.safetensors", "must name its network"), ("junk.safetensors", "cannot be read"),
        ("empty", "must be the folder of a run"), ("nowhere", "does not exist"),
    ):  # fmt: skip
        with pytest.raises(MeadaError, match=sentence):
            open_model(tmp_path / name)


def test_the_verb_prints_json_and_ends_with_2_after_a_bad_picture(model, picture, tmp_path):
    (tmp_path / "bad.jpg").write_text("no")
    words = [
        sys.executable,
        "-m",
        "meada",
        "predict",
        str(model),
        str(picture),
        str(tmp_path / "bad.jpg"),
        "--network",
        *trust(model),
    ]
    got = subprocess.run([*words, "--json"], capture_output=True, text=True)
    good, bad = json.loads(got.stdout)
    assert good["label"] in ("cat", "dog", "Küken") and 0 < good["probability"] <= 1
    assert "is not a readable picture" in bad["error"] and got.returncode == 2
    assert len(got.stderr.strip().splitlines()) == 1 and "bad.jpg is not a readable picture" in got.stderr


FRESH = """
import sys, json, numpy as np
sys.modules["meada"] = sys.modules["torch"] = None  # as where neither is installed
import onnxruntime
from PIL import Image
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
about = session.get_modelmeta().custom_metadata_map
x = np.asarray(Image.open(sys.argv[2]), np.float32).transpose(2, 0, 1)[None] / 255
logits = session.run(["logits"], {"images": np.repeat(x, 5, 0)})[0]
about = {"classes": about["classes"].split("\\n"), "side": about["side"]}
print(json.dumps({**about, "logits": logits.tolist()}))
"""


def test_onnx_gives_the_same_without_meada(model, picture, tmp_path):
    pytest.importorskip("onnxruntime", reason="the extra 'export' is not installed")
    pytest.importorskip("onnxscript", reason="the extra 'export' is not installed")
    from meada.deploy.onnx import export_onnx

    opened = open_model(model, trust(model))
    checked = export_onnx(opened, tmp_path / "m.onnx")
    assert checked.images == 4 and checked.difference < 1e-4
    assert not any(module.training for module in opened.net.modules())  # as it was: statistics of batches are not used
    words = [sys.executable, "-c", FRESH, str(tmp_path / "m.onnx"), str(picture)]
    got = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    assert got["classes"] == ["cat", "dog", "Küken"] and got["side"] == "28"
    (said,) = predict_files(opened, [picture])
    logits = torch.tensor(got["logits"], dtype=torch.float64)
    assert logits.shape == (5, 3)  # exported with a batch of 2: the batch is free
    p = logits.softmax(-1)
    assert p.max(-1).values == pytest.approx([said.probability] * 5, abs=1e-5)
    assert str(tmp_path).encode() not in (tmp_path / "m.onnx").read_bytes().replace(
        opened.recipe.network["name"].encode(), b""
    )  # no stack traces


def test_a_file_that_differs_is_not_written(model, tmp_path, monkeypatch):
    pytest.importorskip("onnxruntime", reason="the extra 'export' is not installed")
    from meada.deploy import onnx

    true = onnx.predict
    monkeypatch.setattr(onnx, "predict", lambda net, x: true(net, x) + 0.01)
    with pytest.raises(MeadaError, match="no file was written"):
        onnx.export_onnx(open_model(model, trust(model)), tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()


def test_an_export_without_its_libraries_says_which(model, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    from meada.deploy.onnx import export_onnx

    with pytest.raises(MeadaError, match=r"onnx must be installed for this: .*meada\[export\]"):
        export_onnx(open_model(model, trust(model)), tmp_path / "m.onnx")
