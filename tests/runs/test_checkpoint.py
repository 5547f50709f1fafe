"""Resume state and weights: no code inside, damage and strangers refused."""

import json
import pickle
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from tests_tiny import load_tiny, tiny, write_recipe
from torch import nn
from torch.testing import assert_close

from meada.errors import MeadaError
from meada.minimise import Training
from meada.runs.checkpoint import load_checkpoint, load_weights_into, save_checkpoint, save_weights
from meada.runs.network import build_network, load_model
from meada.runs.recipe import load_recipe
from meada.runs.run import run
from meada.runs.run_folder import RunFolder


def training(width: int = 5) -> Training:
    net = nn.Sequential(nn.Flatten(), nn.Linear(48, width))
    return Training(net, torch.optim.Adam(net.parameters()), step=7, round=1, epoch=2, position=3)


def test_it_comes_back_as_it_was(tmp_path):
    path, one, two = tmp_path / "checkpoint.pt", training(), training()
    save_checkpoint(path, one, {"rounds": [{"pool": 3}]})
    two.step = two.round = two.epoch = two.position = 0
    assert load_checkpoint(path, two) == {"rounds": [{"pool": 3}]}
    assert (two.step, two.round, two.epoch, two.position) == (7, 1, 2, 3)
    assert torch.equal(one.net[1].weight, two.net[1].weight)
    torch.load(path, weights_only=True)


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "checkpoint.pt"
    save_checkpoint(path, training(), {})
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(MeadaError, match="checkpoint.pt is damaged"):
        load_checkpoint(path, training())


def test_a_foreign_file_is_refused(tmp_path):
    path = tmp_path / "checkpoint.pt"
    torch.save({"weights": torch.zeros(1)}, path)
    with pytest.raises(MeadaError, match="must be a checkpoint of format"):
        load_checkpoint(path, training())


def test_code_in_a_file_is_never_run(tmp_path):
    path, flag = tmp_path / "checkpoint.pt", tmp_path / "flag"

    class Evil:
        def __reduce__(self):
            return (open, (str(flag), "w"))

    path.write_bytes(pickle.dumps(Evil()))
    with pytest.raises(MeadaError):
        load_checkpoint(path, training())
    torch.save(Evil(), path)
    with pytest.raises(MeadaError):
        load_checkpoint(path, training())
    assert not flag.exists()


def test_another_networks_checkpoint_is_refused(tmp_path):
    path = tmp_path / "checkpoint.pt"
    save_checkpoint(path, training(5), {})
    with pytest.raises(MeadaError, match="does not fit this run's recipe"):
        load_checkpoint(path, training(6))


def test_weights_as_safetensors(tmp_path):
    path, one, two = tmp_path / "model.safetensors", training().net, training().net
    save_weights(path, one)
    load_weights_into(two, path)
    assert torch.equal(one[1].weight, two[1].weight)
    with pytest.raises(MeadaError, match="does not fit the network"):
        load_weights_into(training(6).net, path)
    path.write_bytes(b"junk")
    with pytest.raises(MeadaError, match="cannot be read as safetensors"):
        load_weights_into(two, path)


def test_tied_weights_can_be_saved(tmp_path):
    a = nn.Linear(3, 3)
    net = nn.Sequential(a, a)
    save_weights(tmp_path / "tied.safetensors", net)
    load_weights_into(net, tmp_path / "tied.safetensors")


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "checkpoint.pt"
    save_checkpoint(path, training(), {"n": 1})
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save_checkpoint(path, training(), {"n": 2})
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == [path.name]


def test_the_same_weights_are_the_same_file(tmp_path):
    """Eight keys have 40,320 orders: the format's own would hardly come twice."""
    net, about = training().net, {f"key {k}": "\N{SNOWMAN} a\nb" for k in range(8)}
    files = [tmp_path / f"{k}.safetensors" for k in range(4)]
    for path in files:
        save_weights(path, net, about)
    assert len({path.read_bytes() for path in files}) == 1
    with safe_open(files[0], "pt") as file:
        held = dict(file.metadata())
        assert len(held.pop("sha256")) == 64 and held == about  # the checksum comes with the file
        assert torch.equal(file.get_tensor("1.weight"), net[1].weight)
    save_weights(files[1], net)
    load_weights_into(training().net, files[1])


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
