"""Four rules, each with what it may know, and the best step of each."""

import json

import pytest
import torch
from safetensors.torch import load_file
from tests_tiny import load_tiny, write_recipe

from meada.datasets.task import Samples, Task
from meada.evaluation.selection import RULE_TEXTS, RULES, Selection, fixed_subset
from meada.evaluation.validation_shifts import SHIFTS, shifted_once, validation_families
from meada.pool import as_float
from meada.runs.run import run
from meada.runs.run_folder import RunFolder
from meada.types import Images

GREY = {"train": 0.9, "validation": 0.5, "t": 0.1, "u": 0.3}  # each part by its mean level


def samples(name: str, n: int, label: int) -> Samples:
    levels = 255 * GREY[name] + torch.randint(-10, 11, (n, 3, 8, 8))
    return Samples(levels.to(torch.uint8), torch.full((n,), label))


def task(**more) -> Task:
    """Training images are the only ones of class 2: who is scored on them is found out."""
    targets = {"t": samples("t", 5, 1), "u": samples("u", 5, 0)}
    return Task(("a", "b", "c"), samples("train", 4, 2), samples("validation", 6, 0), targets, ("s",), **more)


class Always(torch.nn.Module):
    def __init__(self, label: int) -> None:
        super().__init__()
        self.readout = torch.nn.Linear(1, 3)
        self.label, self.seen = label, []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.append(x)
        return torch.eye(3)[self.label].expand(len(x), 3)


def selection(**more) -> Selection:
    return Selection(task(), subset=5, crafted_size=3, **more)


@pytest.mark.parametrize(
    ("label", "scores"),
    [(0, (100.0, 100.0, 50.0)), (1, (0.0, 0.0, 50.0)), (2, (0.0, 0.0, 0.0))],
)
def test_each_rule_looks_at_its_own_images_and_none_at_training_images(label, scores):
    seen = selection().scores(Always(label))
    assert seen == dict(zip(("source_val", "crafted", "oracle"), scores, strict=True))


def test_source_val_and_crafted_show_the_network_held_out_source_images_alone():
    net = Always(0)
    parts = task()
    Selection(parts, subset=5, crafted_size=3).scores(net)
    plain, *shifted = net.seen[: 1 + len(SHIFTS)]
    held = as_float(fixed_subset("validation", parts.validation, 5).images)
    assert torch.equal(plain, held)
    some = as_float(fixed_subset("validation", parts.validation, 3).images)
    for got, expected in zip(shifted, shifted_once(some, SHIFTS).values(), strict=True):
        assert torch.equal(got, expected)


def test_without_targets_there_is_no_oracle():
    lone = Task(("a", "b", "c"), samples("train", 4, 2), samples("validation", 6, 0), {}, ("s",))
    seen = Selection(lone, subset=5, crafted_size=3).scores(Always(0))
    assert set(seen) == {"source_val", "crafted"}


def test_the_latest_wins_a_tie_and_the_best_stays():
    chosen = selection()
    for step, value in ((1, 40.0), (2, 60.0), (3, 60.0), (4, 50.0)):
        assert chosen.consider(step, {"oracle": value}) == (step < 4)
    assert chosen.steps == {"oracle": 3} and chosen.best == {"oracle": 60.0}


def test_each_rule_keeps_its_own_best_step():
    chosen = selection()
    chosen.consider(1, {"source_val": 90.0, "crafted": 20.0, "oracle": 10.0})
    chosen.consider(2, {"source_val": 80.0, "crafted": 30.0, "oracle": 20.0})
    chosen.consider(3, {"source_val": 70.0, "crafted": 10.0, "oracle": 30.0})
    assert chosen.steps == {"source_val": 1, "crafted": 2, "oracle": 3}


def test_families_that_were_trained_on_are_not_scored_and_the_record_names_the_others():
    trained = frozenset({"tone", "geometry"})
    chosen, net = selection(trained=trained), Always(0)
    chosen.scores(net)
    left = [family for family in SHIFTS if family not in trained]
    assert chosen.about("crafted") == {"knows": RULE_TEXTS["crafted"], "families": left}
    assert chosen.about("last") == {"knows": RULE_TEXTS["last"]}
    assert len(net.seen) == 1 + len(left) + 2  # source, one set per family, two targets


def test_the_four_corruptions_stay_for_the_fifteen_whatever_was_trained_on(monkeypatch):
    asked: list[Images] = []
    monkeypatch.setattr("meada.evaluation.selection.held_out_corruptions", lambda x: asked.append(x) or {"blur": x})
    parts = task(crafted="corruptions")
    chosen = Selection(parts, subset=5, crafted_size=3, trained={"blur", "noise"})
    assert chosen.about("crafted") == {"knows": RULE_TEXTS["crafted"], "corruptions": ["blur"]}
    assert torch.equal(asked[0], as_float(fixed_subset("validation", parts.validation, 3).images))


def test_a_checkpoint_gives_the_best_steps_back():
    chosen, again = selection(), selection()
    chosen.consider(5, {"source_val": 70.0, "crafted": 60.0})
    again.restore(chosen.state())
    assert again.steps == {"source_val": 5, "crafted": 5}
    assert not again.consider(10, {"source_val": 69.0, "crafted": 59.0})


def test_a_crafted_score_over_other_shifts_is_not_compared_with():
    """As in a checkpoint of a version without families."""
    again = selection()
    again.restore({"steps": {"source_val": 5, "crafted": 5}, "scores": {"source_val": 70.0, "crafted": 99.0}})
    again.consider(10, {"source_val": 60.0, "crafted": 50.0})
    assert again.steps == {"source_val": 5, "crafted": 10}


def test_a_subset_is_the_same_every_time():
    part = samples("t", 50, 0)
    a, b = fixed_subset("x", part, 10), fixed_subset("x", part, 10)
    assert len(a) == 10 and torch.equal(a.images, b.images)
    assert len(fixed_subset("x", part, 99)) == 50


def test_a_subset_is_drawn_from_all_of_the_domain():
    part = Samples(torch.zeros(100, 1, 2, 2, dtype=torch.uint8), torch.arange(100))
    taken = fixed_subset("x", part, 20).labels
    assert taken.unique().numel() == 20 and taken.max() > 80 and taken.min() < 20


def test_every_rule_says_what_it_knows():
    assert RULE_TEXTS.keys() == set(RULES) and "targets" in RULE_TEXTS["oracle"]
    assert not any("target" in RULE_TEXTS[rule] for rule in RULES if rule != "oracle")


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
    assert record["selected"]["crafted"] == {"step": 15, "knows": RULE_TEXTS["crafted"], "families": left}
    assert all("families" not in record["selected"][rule] for rule in ("last", "source_val", "oracle"))
