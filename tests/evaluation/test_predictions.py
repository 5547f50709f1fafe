"""What a run writes of every image agrees with what its record says of all of them."""

import pytest
import torch
from tests_tiny import load_tiny, write_recipe

from meada.errors import MeadaError
from meada.evaluation.predictions import load_predictions, per_image, save_predictions
from meada.runs.functions import make
from meada.runs.network import load_model
from meada.runs.run import run
from meada.runs.run_folder import RunFolder


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    torch.set_default_dtype(torch.float32)
    out = tmp_path_factory.mktemp("predictions")
    record = run(load_tiny(write_recipe(out)), out / "run")
    return RunFolder(out / "run"), record


def test_predictions_give_the_records_accuracy(finished):
    folder, record = finished
    told, classes = load_predictions(folder.predictions)
    assert told.keys() == {"last", "source_val"} and len(classes) == 10
    for rule, one in told.items():
        assert one.keys() == {"source", "noisy", "blurred"}
        for domain in ("noisy", "blurred"):
            parts = one[domain]
            right = (parts["guess"] == parts["label"]).double()
            wanted = record["results"][rule][domain]
            assert 100 * float(right.mean()) == pytest.approx(wanted["accuracy"])
            which = (parts["confidence"].double() * 15).ceil().long().clamp(1, 15) - 1
            gap = torch.zeros(15, dtype=torch.float64).index_add_(0, which, parts["confidence"].double() - right)
            assert float(gap.abs().sum() / len(right)) == pytest.approx(wanted["ece"], abs=1e-6)


def test_the_gallery_says_what_the_network_took_each_image_for(finished):
    kept = finished[0].load_gallery()
    for k in (1, 2):
        guesses = [kept[f"round-{k}.{name}_guess"] for name in ("source", "adversarial")]
        assert all(g.shape == kept[f"round-{k}.label"].shape for g in guesses)
        assert all(int(g.min()) >= 0 and int(g.max()) < 10 for g in guesses)


def test_what_is_saved_is_read_again(tmp_path):
    logits, labels = torch.randn(7, 3), torch.randint(3, (7,))
    told = {"a/b": per_image(logits, labels)}
    save_predictions(tmp_path / "p", {"last": told, "oracle": told}, ("x", "y", "z"))
    again, classes = load_predictions(tmp_path / "p")
    assert classes == ("x", "y", "z") and again.keys() == {"last", "oracle"}
    parts = again["last"]["a/b"]
    assert torch.equal(parts["guess"].long(), logits.argmax(-1))
    assert torch.equal(parts["label"].long(), labels)
    assert torch.allclose(parts["confidence"].double(), logits.softmax(-1).amax(-1))


def test_damage_is_one_sentence(tmp_path):
    (tmp_path / "p").write_bytes(b"no tensors")
    with pytest.raises(MeadaError, match="p is damaged or holds no predictions"):
        load_predictions(tmp_path / "p")
    from safetensors.torch import save_file

    save_file({"last/svhn/label": torch.zeros(2)}, tmp_path / "q")
    with pytest.raises(MeadaError, match="'last/svhn' must have label, guess, confidence"):
        load_predictions(tmp_path / "q")


def test_an_attack_on_a_finished_run_begins_at_its_clean_accuracy(finished):
    from meada.evaluation.attack import under_attack

    folder, record = finished
    torch.set_default_dtype(torch.float32)
    task = make("data", folder.load_recipe().data)
    net = load_model(folder, len(task.classes), trust=[record["network"]])
    none = under_attack(net, task.targets, n=20, radius=0.0)
    for name, scores in none["domains"].items():
        wanted = record["results"]["last"][name]["accuracy"]
        assert scores["clean"] == scores["attacked"] == pytest.approx(wanted)
    hard = under_attack(net, task.targets, n=20, radius=64.0)
    assert all(s["attacked"] <= s["clean"] for s in hard["domains"].values())
    assert sum(s["attacked"] for s in hard["domains"].values()) < sum(s["clean"] for s in hard["domains"].values())
