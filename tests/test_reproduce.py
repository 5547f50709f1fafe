"""Sets of runs: named by content, run once, carried on, failures told."""

import json

import pytest
from tests_tiny import write_recipe

from meada.errors import MeadaError
from meada.recipe import load_recipe
from meada.reproduce import Item, expected_seconds, items_of, reproduce


def test_names_come_from_content():
    one, two = (Item(load_recipe("digits/meada", seed=s)) for s in (0, 0))
    other = Item(load_recipe("digits/meada", ["method.beta=1.0"], seed=0))
    assert one.name == two.name != other.name and one.name.startswith("digits-meada-seed0-")


def test_table_1_and_figure_1_share_runs():
    table = {i.name for i in items_of("digits", ["erm", "meada"], 2, [])}
    figure = {i.name for i in items_of("figure1", ["meada"], 2, [])}
    assert len(table) == 4 and len(figure) == 2 * (1 + 3)
    assert table <= figure  # ERM is K = 0, and K = 3 is the table's own


def test_bad_sets_are_named():
    with pytest.raises(MeadaError, match="unknown set of runs 'digit': did you mean 'digits'"):
        items_of("digit", [], 1, [])
    with pytest.raises(MeadaError, match="--seeds 0"):
        items_of("digits", [], 0, [])
    with pytest.raises(MeadaError, match="unknown recipe 'digits/nope'"):
        items_of("digits", ["nope"], 1, [])


def test_what_is_done_is_not_run_again_and_a_failure_stops_nobody(tmp_path):
    path = str(write_recipe(tmp_path, method="erm", settings="", total_steps=12))
    good = [Item(load_recipe(path, seed=seed)) for seed in (0, 1)]
    bad = Item(load_recipe(path, ["descent.lr=1e30", 'descent.name="sgd"'], seed=0))
    out, said = tmp_path / "out", []
    assert reproduce([good[0], bad, good[1]], out, jobs=2, say=said.append) == [bad.name]
    assert all(item.done(out) for item in good) and not bad.done(out)
    assert any("failed" in line and "not finite" in line or "loss is" in line for line in said)
    before = {i.name: i.folder(out).record.read_bytes() for i in good}
    said.clear()
    assert reproduce(good, out, jobs=1, say=said.append) == []
    assert said == ["2 runs, 2 done before, 0 to go"]
    assert before == {i.name: i.folder(out).record.read_bytes() for i in good}
    seconds = expected_seconds([Item(load_recipe(path, seed=7))], out)
    assert [*seconds.values()][0] > 0
    assert json.loads(before[good[0].name])["seed"] == 0
