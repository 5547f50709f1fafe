"""CONTRIBUTING's four examples, written to files outside the package and used as it says."""

import re
import sys
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
import torch
from tests_tiny import tiny
from torch.testing import assert_close

import meada
from meada.reports.page import cost
from meada.reports.page.groups import experiments
from meada.reports.runs import find_runs
from meada.runs.recipe import load_recipe
from meada.runs.run import run
from meada.runs.run_folder import read_json

PAGE = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"```(?:python|toml)\n# (\w+\.\w+)\n(.*?)```", PAGE, re.S))
SMALL = [
    "plan.rounds=0", "plan.min_steps=0", "plan.total_steps=4", "plan.batch_size=4",
    "evaluation.every=4", "evaluation.subset=8", "evaluation.crafted=4",
]  # fmt: skip
DIGITS = ["data.train=20", "data.validation=10", "data.test=10"]

pytestmark = pytest.mark.usefixtures("single")


@pytest.fixture(autouse=True)
def outside(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield
    for name in FILES:
        sys.modules.pop(Path(name).stem, None)


def test_there_are_four_examples_and_a_recipe():
    examples = {"label_smoothing.py", "gamma_curve.py", "stripes.py", "slowest_section.py"}
    assert set(FILES) == {*examples, "stripes.toml"}


def test_the_method_trains_from_a_recipe(tmp_path):
    name = "label_smoothing.py:label_smoothing"
    changes = [*SMALL, *DIGITS, f"method.name={name}", "method.epsilon=0.2"]
    record = run(load_recipe("quickstart/erm", changes), tmp_path / "run")
    assert record["steps"] == 4
    smooth, plain = (import_module("label_smoothing").label_smoothing(epsilon=e).loss for e in (0.5, 0.0))
    net, x, y = tiny(num_classes=10), torch.rand(4, 3, 32, 32), torch.arange(4)
    batch, context = meada.Pool(x, y).batch(torch.arange(4)), None
    assert smooth(net, batch, context) != plain(net, batch, context)


def test_the_space_gives_hard_views_that_depend_on_the_sample_alone():
    space = import_module("gamma_curve").gamma_curve(strength=2.0)
    net, x, y = tiny(num_classes=10), torch.rand(6, 3, 32, 32), torch.arange(6)
    views = meada.hard_views(net, x, y, space=space, seed=1)
    assert not torch.equal(views, x) and views.min() >= 0 and views.max() <= 1
    alone = meada.hard_views(net, x[2:3], y[2:3], space=space, seed=1, index=[2])
    assert_close(alone, views[2:3])


def test_the_space_trains_from_a_recipe_and_refuses_a_bad_strength(tmp_path):
    changes = [*SMALL, *DIGITS, "method.space=gamma_curve.py:gamma_curve", "method.k=2"]
    assert run(load_recipe("quickstart/tilted", changes), tmp_path / "run")["steps"] == 4
    with pytest.raises(meada.MeadaError, match="strength must be greater than 0, got 0"):
        import_module("gamma_curve").gamma_curve(strength=0.0)


@pytest.fixture
def stripes(tmp_path) -> Path:
    """A finished run on the page's data set."""
    changes = [*SMALL, "data.name=stripes.py:stripes", "data.train=12", "data.validation=6", "data.test=8"]
    record = run(load_recipe("quickstart/erm", changes), tmp_path / "runs" / "stripes")
    assert record["results"]["last"]["inverted"]["n"] == 8
    return tmp_path / "runs" / "stripes"


def test_the_recipe_of_the_data_set_trains(tmp_path):
    recipe = load_recipe("stripes.toml", ["evaluation.crafted=4"], trust=["stripes.py:stripes"])
    assert run(recipe, tmp_path / "run")["steps"] == 6


def test_the_table_of_slots_has_every_slot_that_a_method_calls():
    slots = re.findall(r"^\| `(\w+)` \| `\1\(", PAGE, re.M)
    values = {"families", "title", "about", "passes"}
    assert set(slots) == {field.name for field in fields(meada.Method)} - values


def test_the_report_section_shows_a_run_on_the_data_set(stripes):
    import_module("slowest_section").report("runs", "report.html")
    page = Path("report.html").read_text(encoding="utf-8")
    assert "Which run took longest" in page and "Seconds per run" in page


def test_every_table_of_a_report_is_made_where_the_page_says():
    rows = re.findall(r"^\| .* \| `(\w+)\.py`: (.*) \|$", PAGE, re.M)
    assert len(rows) == 6
    for module, functions in rows:
        for function in re.findall(r"`(\w+)`", functions):
            assert callable(getattr(import_module(f"meada.reports.page.{module}"), function, None)), (module, function)


def test_the_column_is_added_as_the_page_says(stripes):
    """The two changes of the page, made to the text of ``cost.py``: name and cell meet in the table."""
    cell = re.search(r"`(1000 \* times.*?)` after `core_hours\(run\)` in `_row`", PAGE)[1]
    text = Path(cost.__file__).read_text(encoding="utf-8")
    for old, new in (('"core-hours"', '"ms per step"'), ("core_hours(run)", cell)):
        text = text.replace(f"{old}, ", f"{old}, {new}, ", 1)
    changed = ModuleType("changed")
    exec(compile(text, "cost.py", "exec"), vars(changed))
    (experiment,) = experiments(find_runs([stripes]))
    table = changed.spent(experiment).blocks[-1]
    seconds = read_json(stripes / "record.json")["seconds"]["minimise"]
    assert table.rows[0][table.columns.index("ms per step")] == pytest.approx(1000 * seconds / 4)
    assert len(table.columns) == len(table.rows[0])
