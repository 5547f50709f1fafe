"""Table 2 from records on disk: the paper's numbers as printed, ours as they were chosen."""

import json
from pathlib import Path

import pytest

from meada.errors import MeadaError
from meada.reports.page import to_markdown
from meada.reports.page.paper import PAPER
from meada.reports.page.table2 import TARGETS, best, full_run, table2
from meada.reports.page.table2 import rows as rows_of
from meada.reports.runs import Run, find_runs
from meada.runs.recipe import load_recipe, to_toml


def markdown(found: list[Run]) -> str:
    return to_markdown(table2(found), {}, Path())


def rows(found: list[Run], rules=("source_val", "oracle")):
    return [row for labelled in (True, False) for row in rows_of(found, labelled, rules)]


def put(folder: Path, method: str, target: str, accuracy: float, seed: int = 0, **changes) -> None:
    """A run's folder with what a report reads of it."""
    out = folder / f"{method}-{target}-{seed}-{len([*folder.glob('*')])}"
    out.mkdir(parents=True)
    scores = lambda shift: {target: {"accuracy": accuracy + shift, "n": 10}}
    record = {
        "data": "pacs", "method": method, "network": "alexnet", "seed": seed, "steps": 400,
        "provenance": {target: "10 pictures to test on; 10 of the 2,048 published are there"},
        "weights": {"file": "conv.pth", "left_at_random": ["classifier.1.weight"]},
        "results": {"last": scores(0.0), "source_val": scores(1.0), "oracle": scores(5.0)},
        "recipe": f"pacs/{method}-{target}-small", "source": {"last": {"accuracy": 81.25, "n": 10}},
        "seconds": {"minimise": 600.0, "evaluate": 120.0},
        "environment": {"threads": 1, "processor": "some CPU"},
    }  # fmt: skip
    name = changes.get("recipe", f"pacs/{method}-{target}-small")
    (out / "record.json").write_text(json.dumps({**record, **changes.get("record", {})}))
    recipe = load_recipe(name, changes.get("settings"), seed=seed)
    (out / "recipe.toml").write_text(to_toml(recipe))


def runs(folder: Path) -> list[Run]:
    return find_runs([folder]) if any(folder.iterdir()) else []


def test_the_papers_averages_are_those_of_its_rows():
    for numbers in PAPER["pacs"]["mean"].values():
        assert numbers[4] == pytest.approx(sum(numbers[:4]) / 4, abs=0.0501)


def test_the_papers_bold_numbers_are_found_again(tmp_path):
    text = markdown(runs(tmp_path))
    line = {x.split("|")[1].strip(): x for x in text.splitlines() if "| paper |" in x}
    bold = {name: x.count("**") // 2 for name, x in line.items() if "**" in x}
    # MetaReg leads in art, photo and average, Epi-FCR in the others; PAR ties on photo
    assert bold == {"MetaReg": 3, "Epi-FCR": 2, "PAR": 1, "ME-ADA": 5}
    assert "no records" in text


def test_ours_is_a_mean_over_seeds_of_the_chosen_checkpoint(tmp_path):
    for seed, accuracy in enumerate((50.0, 52.0, 54.0)):
        put(tmp_path, "meada", "sketch", accuracy, seed)
    (line,) = (r for r in rows(runs(tmp_path)) if r.whose == "ours, scaled, source_val")
    assert line.values == (None, None, None, 53.0, None)
    assert line.texts == ("–", "–", "–", "53.0 ± 2.0 (n=3)", "–")


def test_an_average_needs_all_four_targets_and_the_best_is_of_its_own_kind(tmp_path):
    for k, target in enumerate(TARGETS):
        put(tmp_path, "agg", target, 40.0 + k)
        put(tmp_path, "meada", target, 41.0 + k - 2 * (target == "sketch"))
    lines = rows(runs(tmp_path), rules=("last",))
    ours = {line.method: line for line in lines if line.whose == "ours, scaled, last"}
    assert ours["AGG"].values[4] == 41.5 and ours["ME-ADA"].values[4] == 42.0
    assert best(ours["AGG"], lines) == (False, False, False, True, False)
    assert best(ours["ME-ADA"], lines) == (True, True, True, False, True)


def test_scaled_and_full_runs_are_never_averaged(tmp_path):
    put(tmp_path, "ada", "photo", 60.0)
    put(tmp_path, "ada", "photo", 80.0, recipe="pacs/ada-photo")
    found = {r.whose: r.values[2] for r in rows(runs(tmp_path), rules=("last",)) if r.method == "ADA"}
    assert found == {"paper": 85.1, "ours, full, last": 80.0, "ours, scaled, last": 60.0}


def test_the_notes_say_how_everything_was_chosen(tmp_path):
    put(tmp_path, "meada", "sketch", 50.0)
    text = markdown(runs(tmp_path))
    for sentence in (
        "beta 100 for sketch",
        "knowledge of the test domain",
        "Ours, source_val: the best on held-out source images",
        "Ours, oracle: the best on the targets themselves",
        "Ours, scaled: 400 steps, 200 pictures of each source (the paper: 45,000 steps)",
        "alexnet, weights from conv.pth; randomly initialised: classifier.1.weight",
        "10 of the 2,048 published are there",
    ):
        assert sentence in text


def test_a_checkpoint_from_before_the_first_round_is_marked(tmp_path):
    """It is a network of plain training, whatever the method is called."""
    chosen = {"last": {"step": 400}, "source_val": {"step": 100}, "oracle": {"step": 101}}
    put(tmp_path, "meada", "sketch", 50.0, record={"selected": chosen})
    (folder,) = tmp_path.iterdir()
    (folder / "log.jsonl").write_text('{"step": 100, "round": 1, "ce": [0.1, 0.2]}\n')
    text = markdown(runs(tmp_path))
    assert "51.0 (n=1)† |" in text and "50.0 (n=1) |" in text and "55.0 (n=1) |" in text
    assert "†: chosen before the first maximisation round" in text
    (folder / "log.jsonl").write_text('{"step": 99, "round": 1, "ce": [0.1, 0.2]}\n')
    assert "†" not in markdown(runs(tmp_path))


def test_a_full_run_is_priced_by_what_the_scaled_one_took(tmp_path):
    """600 s for 400 steps, and 300 s for 600 new pictures of 50 ascent steps; evaluation is left at nothing."""
    took = {"minimise": 600.0, "maximise": 300.0, "evaluate": 0.0}
    put(tmp_path, "meada", "sketch", 50.0, record={"seconds": took})
    (run,) = runs(tmp_path)
    costs, hours = full_run(run)
    assert (costs.step, costs.climb) == pytest.approx((1.5, 0.01))
    assert hours == pytest.approx((45_000 * 1.5 + 5_456 * 50 * 0.01) / 3600)  # one round doubles the pool
    text = markdown([run])
    assert "| ME-ADA | sketch | 1.50 | 10.0 | 19.5 |" in text and f"about {4 * hours:,.0f} core-hours a seed" in text
    assert "runs have 0.9 % of the paper's 45,000 steps" in text and "no cell is called reproduced" in text
    put(tmp_path / "other", "meada", "sketch", 50.0, recipe="pacs/meada-sketch")
    assert "Limits of the scaled-down runs" not in markdown(runs(tmp_path / "other"))


def test_every_run_has_its_command_and_what_it_learnt_of_its_sources(tmp_path):
    put(tmp_path, "dsn", "sketch", 50.0, seed=3)
    command = "`OMP_NUM_THREADS=1 meada train pacs/dsn-sketch-small --seed 3 --out NEW`"
    assert f"| 400 | 81.2 | 10, 0, 2 | 0.20 | 1 thread of some CPU | {command} |" in markdown(runs(tmp_path))


def test_a_network_without_pretraining_is_said_to_be_one(tmp_path):
    put(tmp_path, "agg", "photo", 30.0, record={"weights": {}})
    assert "all layers randomly initialised" in markdown(runs(tmp_path))


def test_other_records_are_left_alone_and_broken_ones_are_named(tmp_path):
    both = {"results": {"last": dict.fromkeys(("photo", "sketch"), {"accuracy": 30.0, "n": 10})}}
    put(tmp_path, "agg", "photo", 30.0, record={"data": "digits"})
    put(tmp_path, "agg", "photo", 30.0, record=both)
    assert "no records" in markdown(runs(tmp_path))
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "record.json").write_text("{")
    with pytest.raises(MeadaError, match=r"b/record\.json is not JSON"):
        runs(tmp_path)


def test_a_changed_setting_has_a_line_and_a_command_of_its_own(tmp_path):
    put(tmp_path, "ada", "photo", 60.0)
    put(tmp_path, "ada", "photo", 80.0, settings=["method.steps=5", "method.grow=source"])
    lines = {r.whose: r.values[2] for r in rows(runs(tmp_path), ("last",)) if r.method == "ADA"}
    changed = "ours, scaled, method.grow = source, method.steps = 5, last"
    assert lines == {"paper": 85.1, "ours, scaled, last": 60.0, changed: 80.0}
    text = markdown(runs(tmp_path))
    assert "--seed 0 --set method.grow=source --set method.steps=5 --out NEW`" in text
