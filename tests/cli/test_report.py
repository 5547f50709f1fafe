"""``meada report`` and ``meada evaluate --pgd``, by their words."""

import json

import pytest
from tests_records import write_run
from tests_tiny import network_of, write_recipe
from typer.testing import CliRunner

from meada.cli.main import app
from meada.corruptions import CORRUPTIONS
from meada.errors import MeadaError
from meada.runs.recipe import load_recipe, to_toml

pytestmark = pytest.mark.usefixtures("single")


def meada(*words) -> str:
    """What is printed; a fault is raised, and ``main`` turns it into a sentence and exit code 2."""
    return CliRunner().invoke(app, [str(w) for w in words], catch_exceptions=False).stdout


def test_a_page_of_runs_and_of_folders_of_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one = write_run(tmp_path / "erm", "erm")
    write_run(tmp_path / "others", "meada", rounds=3)
    said = meada("report", one, tmp_path / "others", "--out", "r.html", "--png", "p")
    assert said.splitlines()[0] == "r.html"
    html = (tmp_path / "r.html").read_text()
    assert "ME-ADA" in html and "This page: meada report" in html
    assert len(list((tmp_path / "p").glob("*.png"))) == len(said.splitlines()) - 1 > 5
    assert meada("report", one) == "report.html\n" and (tmp_path / "report.html").exists()
    with pytest.raises(MeadaError, match="nowhere must be a folder with a run to report"):
        meada("report", tmp_path / "nowhere", "--out", "x.html")
    assert not (tmp_path / "x.html").exists()


def test_the_papers_tables_are_there_as_before(tmp_path):
    about = {"data": "cifar10", "network": "wideresnet", "severities": 5, "images": 3}
    made = write_run(tmp_path / "runs", "meada", domains=tuple(CORRUPTIONS), **about)
    (made / "recipe.toml").write_text(to_toml(load_recipe("cifar10c/wideresnet-meada")))
    said = meada("report", tmp_path / "runs", "--table", "3")
    assert "| CIFAR-10-C WideResNet |" in said and "(83.3)" in said
    written = meada("report", tmp_path, "--table", "3", "--markdown", tmp_path / "t.md").split()
    assert written == [str(tmp_path / "t.md"), str(tmp_path / "figures" / "table3.png")]
    rows = lambda text: {line for line in text.splitlines() if line.startswith("|")}
    assert rows((tmp_path / "t.md").read_text()) < rows(said)  # the terminal has a table in place of each figure
    with pytest.raises(MeadaError, match="must have runs on digits"):
        meada("report", tmp_path, "--table", "1")
    with pytest.raises(MeadaError, match="--table must be 1, 2 or 3, got 4"):
        meada("report", tmp_path, "--table", "4")


def test_an_attack_is_measured_once_and_then_reported(tmp_path):
    out = tmp_path / "run"
    recipe = write_recipe(tmp_path, method="erm", settings="")
    meada("train", recipe, "--out", out, "--quiet", "--network", network_of(recipe))
    got = json.loads(meada("evaluate", out, "--pgd", "10", "--json", "--network", network_of(recipe)))
    held = json.loads((out / "attack.json").read_text())
    assert held["domains"].keys() == {"source", "noisy", "blurred"}
    assert got["noisy"]["pgd"] == held["domains"]["noisy"] and held["rule"] == "last"
    meada("report", out, "--out", tmp_path / "r.html")
    assert "Accuracy under a small attack" in (tmp_path / "r.html").read_text()
