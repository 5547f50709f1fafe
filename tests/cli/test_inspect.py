"""``meada inspect``: what the rounds did, in a table and two pictures."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests_tiny import load_tiny, write_recipe
from typer import Typer
from typer.testing import CliRunner

from meada.cli.reports import inspect
from meada.errors import MeadaError
from meada.runs.run import run

app = Typer()
app.command()(inspect)


def call(*words: object):
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "80"})


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict[str, Path]:
    """ERM, and ME-ADA with steps of a useful size and with steps of none."""
    torch.set_default_dtype(torch.float32)
    folder = tmp_path_factory.mktemp("runs")
    for name, method, settings in (
        ("erm", "erm", ""),
        ("meada", "meada", "steps = 3\nstep_size = 1.0"),
        ("still", "meada", "steps = 1\nstep_size = 1e-6"),
    ):
        (folder / name).mkdir()
        recipe = write_recipe(folder / name, method=method, settings=settings)
        run(load_tiny(recipe), folder / name / "run")
    return {name: folder / name / "run" for name in ("erm", "meada", "still")}


def test_it_shows_a_table_and_leaves_two_pictures(runs, tmp_path):
    got = call(runs["meada"], "--out", tmp_path)
    assert got.exit_code == 0, got.output
    assert "sharper" in got.output and "quarter of a cycle" in " ".join(got.output.split())
    for name in ("rounds.png", "spectrum.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
        assert name in got.output


def test_its_table_fits_a_terminal_with_every_number_whole(runs):
    got = call(runs["meada"], "--no-pictures").output
    rounds = json.loads((runs["meada"] / "record.json").read_text())["rounds"]
    assert max(map(len, got.splitlines())) <= 80 and "\u2026" not in got
    before, after = rounds[1]["entropy"]
    assert f"from {before:.3f} to {after:.3f}" in got and "a sharper bound" in got
    assert f"{rounds[1]['bound']['proposition_3']:.3f}" in got


def test_its_json_is_the_record(runs):
    told = json.loads(call(runs["meada"], "--no-pictures", "--json").output)
    assert told["rounds"] == json.loads((runs["meada"] / "record.json").read_text())["rounds"]


def test_every_round_is_recorded_with_what_the_theory_measures(runs):
    record = json.loads((runs["meada"] / "record.json").read_text())
    for line in record["rounds"]:
        assert line["bound"]["n"] == 60 and line["bound"]["classes"] == 10
        assert line["rise"]["beta"] == 10.0 and line["warnings"] == []
        assert sum(line["spectrum"]["perturbation"]) == pytest.approx(1, abs=1e-5)
        assert line["levels"]["max"] >= line["levels"]["median"] > 0.5


def test_a_round_that_did_nothing_is_told_of(runs):
    got = call(runs["still"], "--no-pictures")
    assert "round 1 did nothing" in " ".join(got.output.split())


def test_the_gallery_holds_pairs(runs):
    tensors = load_file(runs["meada"] / "gallery.safetensors")
    assert tensors["round-2.spectrum"].shape == (32, 32)
    parent, adversarial = tensors["round-2.parent"], tensors["round-2.adversarial"]
    assert parent.shape == adversarial.shape == (10, 3, 32, 32)


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["erm"], "no maximisation round has ended"),
        (["nowhere"], "nowhere must hold a run to inspect"),
    ],
)
def test_bad_input_is_one_sentence(runs, tmp_path, words, sentence):
    paths = [w if w.startswith("--") else runs.get(w, tmp_path / w) for w in words]
    got = call(*paths)
    assert isinstance(got.exception, MeadaError) and sentence in str(got.exception)


def test_a_run_that_is_not_finished_is_read_from_its_log(runs, tmp_path):
    for name in ("log.jsonl", "gallery.safetensors", "recipe.toml"):
        (tmp_path / name).write_bytes((runs["meada"] / name).read_bytes())
    with open(tmp_path / "log.jsonl", "a") as file:
        file.write('{"step": 99, "round"')  # a line that is being written
    told = json.loads(call(tmp_path, "--no-pictures", "--json").output)
    assert [line["round"] for line in told["rounds"]] == [1, 2]
