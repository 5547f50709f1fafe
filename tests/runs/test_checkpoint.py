"""Resume state and weights: no code inside, damage and strangers refused."""

import pickle

import pytest
import torch
from safetensors import safe_open
from torch import nn

from meada.errors import MeadaError
from meada.minimise import Training
from meada.runs.checkpoint import load_checkpoint, load_weights_into, save_checkpoint, save_weights


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
    with pytest.raises(MeadaError, match="no checkpoint of meada"):
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
