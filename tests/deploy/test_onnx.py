"""What an ONNX file says of itself, and with which images it is checked before it is written."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from meada.deploy.model import SEVERAL, Model, open_model, save_model
from meada.deploy.onnx import BATCHES, REAL, metadata, samples
from meada.runs.network import build_network
from meada.runs.recipe import resolve


@pytest.fixture
def model(tmp_path: Path, single: None) -> Model:
    recipe = resolve({
        "name": "x", "network": {"name": "lenet"}, "method": {"name": "erm"}, "data": {"name": "embedded"},
    })  # fmt: skip
    about = {SEVERAL: "yes", "abstain_entropy": "0.25"}
    save_model(tmp_path / "model.safetensors", build_network(recipe, 3), recipe, ("b", "a", "c"), about)
    return open_model(tmp_path / "model.safetensors")


def test_metadata_say_what_the_logits_mean(model):
    """Several labels need a sigmoid, one a softmax; classes are in the order of the logits."""
    held = metadata(model)
    assert held["classes"] == "b\na\nc" and held["side"] == "32"
    assert held[SEVERAL] == "yes" and held["abstain_entropy"] == "0.25"
    del model.about[SEVERAL]
    assert SEVERAL not in metadata(model)


def test_real_pictures_of_the_run_are_tried_too(model):
    kept = torch.randint(0, 256, (REAL + 4, 3, 32, 32), dtype=torch.uint8)
    gallery = {"round-1.adversarial": kept * 0, "round-1.source": kept}
    model.run = SimpleNamespace(load_gallery=lambda: gallery)  # type: ignore[assignment]
    made, real = samples(model)
    assert [len(x) for x in (*made, *real)] == [*BATCHES, REAL]
    torch.testing.assert_close(real[0], kept[:REAL].float() / 255)
    model.run = None
    assert samples(model)[1] == []
