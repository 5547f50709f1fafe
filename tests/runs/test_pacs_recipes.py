"""The PACS recipes hold the supplement's table, and differ in what they say they differ in."""

import tomllib

import pytest
import torch
from torch.testing import assert_close

from meada.networks.plain import alexnet
from meada.runs.recipe import load_recipe
from meada.runs.recipe_families import SHIPPED, recipe_names
from meada.units import per_sample

TARGETS = ("art_painting", "cartoon", "photo", "sketch")
METHODS = ("agg", "ada", "meada", "par", "hex")  # without domain labels
BETA = {"art_painting": 1.0, "cartoon": 100.0, "photo": 1.0, "sketch": 100.0}  # the supplement's


def test_every_method_has_every_target_in_both_forms():
    methods = tomllib.loads((SHIPPED / "_table2.toml").read_text(encoding="utf-8"))["methods"]
    wanted = {f"pacs/{m}-{t}{s}" for m in methods for t in TARGETS for s in ("", "-small")}
    assert {name for name in recipe_names() if name.startswith("pacs/")} == wanted
    assert set(METHODS) <= set(methods)


def test_a_note_names_method_and_target():
    notes = [load_recipe(name).note for name in ("pacs/ada-photo", "pacs/par-art_painting-small")]
    assert notes[0] == "Table 2, ADA, photo held out"
    assert notes[1].startswith("Table 2, PAR, art_painting held out; scaled: ")


@pytest.mark.parametrize("target", TARGETS)
def test_the_supplements_table(target):
    recipe = load_recipe(f"pacs/meada-{target}")
    plan, method = recipe.plan, recipe.method
    assert (plan.rounds, plan.total_steps, plan.min_steps) == (1, 45_000, 100)
    assert (method["steps"], method["step_size"], method["gamma"]) == (50, 50.0, 10.0)
    assert (method["name"], method["beta"], method["units"]) == ("meada", BETA[target], "official")
    assert (plan.batch_size, method["units_batch"]) == (32, 32)
    assert recipe.descent.model_dump() == {
        "name": "sgd", "lr": 0.001, "weight_decay": 5e-5, "momentum": 0.9, "nesterov": False,
        "schedule": "cosine",
    }  # fmt: skip
    assert recipe.data["targets"] == [target] and recipe.network["name"] == "alexnet"
    assert recipe.embedding == "avgpool"


@pytest.mark.parametrize("form", ["", "-small"])
def test_methods_of_a_target_differ_in_the_method_alone(form):
    tables = [load_recipe(f"pacs/{m}-sketch{form}").model_dump() for m in METHODS]
    assert [table["method"]["name"] for table in tables] == list(METHODS)
    for table in tables:
        for key in ("name", "note", "method"):
            table.pop(key)
    assert all(table == tables[0] for table in tables)


def test_targets_of_a_method_differ_in_the_target_alone():
    tables = [load_recipe(f"pacs/hex-{t}").model_dump() for t in TARGETS]
    for table in tables:
        for key in ("name", "note"):
            table.pop(key)
        table["data"].pop("targets")
    assert all(table == tables[0] for table in tables)


def test_ada_is_meada_without_entropy():
    ada, meada = (load_recipe(f"pacs/{m}-cartoon").method for m in ("ada", "meada"))
    assert ada.pop("beta") == 0.0 and meada.pop("beta") == 100.0
    assert {**ada, "name": ""} == {**meada, "name": ""}


def test_a_scaled_form_changes_its_size_and_says_so():
    whole, small = (load_recipe(f"pacs/meada-photo{s}").model_dump() for s in ("", "-small"))
    changed = {
        f"{key}.{k}" if isinstance(value, dict) else key
        for key, value in small.items()
        for k in (value if isinstance(value, dict) else [""])
        if (value.get(k) if isinstance(value, dict) else value)
        != (whole[key].get(k) if isinstance(value, dict) else whole[key])
    }
    assert changed == {"name", "note", "data.per_domain", "plan.total_steps", "evaluation.every"}
    for number in (small["data"]["per_domain"], small["plan"]["total_steps"]):
        assert str(number) in small["note"]
    assert "scaled" in small["note"]


def test_official_units_on_pacs_worked_out():
    """eta = 50 / 32 * sigma**2 with ImageNet's sigma, gamma = 10 / 9216."""
    net, x = alexnet(num_classes=7), torch.rand(1, 3, 224, 224)
    eta, gamma = per_sample("official", net, x, step_size=50.0, gamma=10.0, batch=32, embedding="avgpool")
    assert_close(torch.as_tensor(eta), 1.5625 * torch.tensor([0.229, 0.224, 0.225]) ** 2)
    assert gamma == pytest.approx(10 / 9216)


def test_par_on_digits_differs_from_erm_in_the_method_alone():
    par, erm = (load_recipe(f"digits/{m}").model_dump() for m in ("par", "erm"))
    for table in (par, erm):
        for key in ("name", "note", "method"):
            table.pop(key)
    assert par == erm
