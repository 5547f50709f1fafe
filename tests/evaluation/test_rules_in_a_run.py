"""In a run every rule keeps the step that its own score prefers, and the weights of that step."""

import json

import pytest
import torch
from safetensors.torch import load_file
from tests_tiny import load_tiny, write_recipe

from meada.evaluation.selection import KNOWS, Selection
from meada.evaluation.validation_shifts import validation_families
from meada.runs.run import run
from meada.runs.run_folder import RunFolder

# by construction each rule prefers another step; 10 and 15 tie for ``crafted``: the later wins
SCORES = {
    "source_val": {5: 90.0, 10: 70.0, 15: 60.0, 20: 50.0},
    "crafted": {5: 10.0, 10: 40.0, 15: 40.0, 20: 20.0},
    "oracle": {5: 30.0, 10: 80.0, 15: 20.0, 20: 10.0},
}


@pytest.fixture
def weights(monkeypatch) -> dict[int, dict[str, torch.Tensor]]:
    """Of each candidate, as it was scored."""
    kept = {}

    def scores(self, net, world=None, step=None):
        kept[step] = {name: value.clone() for name, value in net.state_dict().items()}
        return {rule: each[step] for rule, each in SCORES.items()}

    monkeypatch.setattr(Selection, "scores", scores)
    return kept


def test_a_rule_keeps_the_step_that_its_own_score_prefers(tmp_path, single, weights):
    recipe = load_tiny(write_recipe(tmp_path, method="cutout", settings=""))
    record = run(recipe, tmp_path / "run")
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").open()]
    columns = {rule: {line["step"]: line["scores"][rule] for line in log if "scores" in line} for rule in SCORES}
    assert columns == SCORES
    expected = {"last": 20} | {rule: max(c, key=lambda step: (c[step], step)) for rule, c in columns.items()}
    assert {rule: one["step"] for rule, one in record["selected"].items()} == expected
    assert expected == {"last": 20, "source_val": 5, "crafted": 15, "oracle": 10}
    for rule, step in expected.items():
        held = load_file(RunFolder(tmp_path / "run").selected(rule))
        assert all(torch.equal(held[name], value) for name, value in weights[step].items()), rule


def test_the_record_names_the_families_that_were_scored(tmp_path, single, weights):
    record = run(load_tiny(write_recipe(tmp_path, method="cutout", settings="")), tmp_path / "run")
    left = list(validation_families({"occlusion"}))
    assert record["selected"]["crafted"] == {"step": 15, "knows": KNOWS["crafted"], "families": left}
    assert all("families" not in record["selected"][rule] for rule in ("last", "source_val", "oracle"))
