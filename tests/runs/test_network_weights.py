"""A recipe's file of weights: what fits is loaded, the rest is told, a model needs it no more."""

import json
from pathlib import Path

import pytest
import torch
from tests_tiny import load_tiny, tiny, write_recipe
from torch.testing import assert_close

from meada.errors import MeadaError
from meada.runs.recipe import load_recipe
from meada.runs.run import build_network, load_model, run
from meada.runs.run_folder import RunFolder

pytestmark = pytest.mark.usefixtures("single")


@pytest.fixture
def conv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, torch.Tensor]:
    """The first layer of a tiny network, where a recipe looks for published weights."""
    monkeypatch.setenv("MEADA_DATA", str(tmp_path / "data"))
    torch.manual_seed(3)
    held = {k: v for k, v in tiny().state_dict().items() if k.startswith("0.")}
    (tmp_path / "data" / "weights").mkdir(parents=True)
    torch.save(held, tmp_path / "data" / "weights" / "conv.pth")
    return held


CHANGES = ["network.weights=conv.pth", "network.partial=true", "plan.rounds=0"]


def test_what_fits_is_loaded_and_the_rest_is_the_seeds(tmp_path, conv):
    path = str(write_recipe(tmp_path, method="erm", settings=""))
    net = build_network(load_tiny(path, CHANGES), 10).state_dict()
    fresh = build_network(load_tiny(path), 10).state_dict()
    for name in net:
        wanted = conv.get(name, fresh[name])
        assert_close(net[name], wanted, rtol=0, atol=0)
    assert not torch.equal(net["0.weight"], fresh["0.weight"])


def test_the_record_tells_and_the_model_outlives_the_file(tmp_path, conv):
    recipe = load_tiny(write_recipe(tmp_path, method="erm", settings=""), CHANGES)
    run(recipe, tmp_path / "out")
    weights = json.loads((tmp_path / "out" / "record.json").read_text())["weights"]
    assert weights["file"] == "conv.pth" and len(weights["sha256"]) == 64
    assert weights["loaded"] == ["0.weight", "0.bias"]
    assert {"5.weight", "7.bias"} <= set(weights["left_at_random"])
    (tmp_path / "data" / "weights" / "conv.pth").unlink()
    load_model(RunFolder(tmp_path / "out"), 10, trust=[recipe.network["name"]])


def test_without_partial_the_missing_names_are_refused(tmp_path, conv):
    path = str(write_recipe(tmp_path, method="erm", settings=""))
    with pytest.raises(MeadaError, match=r"conv\.pth does not fit the network: it lacks 1\.weight"):
        build_network(load_tiny(path, ["network.weights=conv.pth"]), 10)
    with pytest.raises(MeadaError, match=r"data/weights/other\.pth must be a file of weights"):
        build_network(load_tiny(path, ["network.weights=other.pth"]), 10)


def test_a_recipe_without_weights_says_nothing_of_them(tmp_path):
    assert load_recipe("digits/erm").network == {"name": "lenet"}
    with pytest.raises(MeadaError, match=r"unknown key 'network\.weight': did you mean 'weights'"):
        load_recipe("digits/erm", ["network.weight=x"])
