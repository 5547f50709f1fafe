"""No verb runs code that a file names, unless the person names it too."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import tomli_w
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from tests_tiny import network_of, write_recipe
from typer.testing import CliRunner

from meada.cli.main import app
from meada.errors import MeadaError
from meada.runs.recipe import from_toml, load_recipe
from meada.runs.run import run

pytestmark = pytest.mark.usefixtures("single")
SMALL = ["data.train=40", "data.validation=20", "data.test=20", "plan.total_steps=6", "plan.rounds=1",
         "plan.min_steps=3", "plan.batch_size=10", "method.steps=1", "evaluation.every=3",
         "evaluation.subset=10", "evaluation.crafted=5"]  # fmt: skip


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of built-in parts."""
    out = tmp_path_factory.mktemp("honest") / "run"
    torch.set_default_dtype(torch.float32)
    run(load_recipe("quickstart/meada", SMALL), out)
    return out


def call(*words: object) -> str:
    """The sentence that a verb ends with; nothing where it ends well."""
    got = CliRunner().invoke(app, [str(word) for word in words])
    if got.exception is None:
        return ""
    assert isinstance(got.exception, MeadaError), (words, got.exception)
    return str(got.exception)


def poisoned(honest: Path, folder: Path, kind: str, form: str) -> tuple[Path, Path, str]:
    """The run as a stranger shares it: the recipe, on disk and in the model, names code; its marker."""
    run, marker = folder / "runs" / "run", folder / "marker"
    shutil.copytree(honest, run)
    (run / "evil.py").write_text(f"import pathlib\npathlib.Path({str(marker)!r}).touch()\ndef f(**_): pass\n")
    name = {"file": f"{run / 'evil.py'}:f", "module": "os:system"}[form]
    table = from_toml(run / "recipe.toml").model_dump()
    table[kind] = {"name": name} if form == "file" else {"name": name, "command": f"touch {marker}"}
    if kind == "space":
        table["method"] = {"name": "tilted", "space": table.pop("space")["name"]}
    table = json.loads(json.dumps(table))
    (run / "recipe.toml").write_text(tomli_w.dumps(table))
    about = {"classes": "\n".join("0123456789"), "recipe_toml": tomli_w.dumps(table), "side": "32"}
    save_file(load_file(run / "model.safetensors"), run / "model.safetensors", about)
    for file in ("checksums.json",):
        (run / file).unlink(missing_ok=True)
    return run, marker, name


def verbs(run: Path, folder: Path) -> dict[str, list[object]]:
    Image.fromarray(np.zeros((32, 32, 3), np.uint8)).save(folder / "p.png")
    model, out = run / "model.safetensors", folder / "out"
    return {
        "predict": ["predict", model, folder / "p.png"],
        "predict folder": ["predict", run, folder / "p.png"],
        "evaluate": ["evaluate", run],
        "export": ["export", run, "--onnx", folder / "m.onnx"],
        "perturb": ["perturb", run, "--out", out],
        "train": ["train", run / "recipe.toml", "--out", out],
        "train --resume": ["train", run / "recipe.toml", "--out", run, "--resume"],
        "train --resume other": ["train", "quickstart/meada", "--out", run, "--resume"],
        "report": ["report", run, "--out", folder / "r.html"],
        "report --markdown": ["report", run, "--markdown", folder / "r.md"],
        "watch": ["watch", run, "--once"],
        "inspect": ["inspect", run, "--no-pictures"],
        "sweep": ["sweep", run / "recipe.toml", "--out", run.parent, "--dry-run"],
        "sweep over it": ["sweep", "quickstart/meada", "--out", run.parent, "--dry-run"],
        "reproduce": ["reproduce", "digits", "--methods", "erm", "--seeds", "1", "--out", run.parent, "--dry-run",
                      "--timings", run.parent],
    }  # fmt: skip


@pytest.mark.parametrize("form", ["file", "module"])
@pytest.mark.parametrize("kind", ["network", "method", "data", "loss", "augment", "space"])
def test_no_verb_runs_what_a_file_names(honest, tmp_path, monkeypatch, kind, form):
    monkeypatch.setattr("meada.reproduce.cost.probe", lambda recipe: pytest.fail("not asked for"))
    monkeypatch.setattr("meada.cli.reproduce._tried", lambda items, jobs: {})
    run, marker, name = poisoned(honest, tmp_path, kind, form)
    said = {}
    for verb, words in verbs(run, tmp_path).items():
        said[verb] = call(*words)
        assert not marker.exists(), verb
    flag = {"loss": "method", "augment": "trust"}.get(kind, kind)
    assert f"needs code from {name}; pass --{flag} {name} to allow it" in said["train"]
    if kind == "network":
        for verb in ("predict", "predict folder", "evaluate", "export", "perturb", "train --resume"):
            assert f"this model needs code from {name}; pass --network {name} to allow it" in said[verb], verb


def test_what_the_person_names_is_run(honest, tmp_path):
    run, marker, name = poisoned(honest, tmp_path, "network", "file")
    assert "must give a Module, got NoneType" in call("predict", run, tmp_path / "p.png", "--network", name)
    assert marker.exists()


def test_another_name_allows_nothing(honest, tmp_path):
    run, marker, name = poisoned(honest, tmp_path, "network", "file")
    (tmp_path / "other.py").write_text("def f(num_classes): pass")
    for other in (f"{tmp_path / 'other.py'}:f", "os:system", f"{run / 'evil.py'}:g"):
        said = call("evaluate", run, "--network", other)
        assert f"--trust {other} must be a name in the recipe" in said or "needs code" in said
        assert not marker.exists()


def test_a_robustify_plan_runs_nothing(honest, tmp_path):
    """A request in a plan is compared with the person's own; what it names is not looked up."""
    run, marker, name = poisoned(honest, tmp_path, "network", "file")
    asked = {"data": str(tmp_path), "tests": [], "network": name, "weights": "", "model": "", "minutes": None,
             "seed": 0, "side": None, "group": "", "changes": []}  # fmt: skip
    (tmp_path / "out").mkdir()
    held = {"format": "meada-robustify/3", "request": asked, "plan": {}, "budget": {"whole": {}}, "pictures": {}}
    (tmp_path / "out" / "plan.json").write_text(json.dumps(held))
    assert "network" in call("robustify", "--data", tmp_path, "--out", tmp_path / "out", "--quiet")
    assert not marker.exists()


def test_a_recipe_of_ones_own_needs_the_name_once(tmp_path):
    recipe = write_recipe(tmp_path, method="erm", settings="", total_steps=12)
    words = ["train", recipe, "--out", tmp_path / "run", "--quiet"]
    assert "pass --network" in call(*words) and not (tmp_path / "run").exists()
    assert call(*words, "--network", network_of(recipe)) == ""
    assert call("evaluate", tmp_path / "run", "--network", network_of(recipe)) == ""
    typed = f"network.name={network_of(recipe)}"
    assert call("train", recipe, "--out", tmp_path / "typed", "--quiet", "--set", typed) == ""
