"""Recipes: the paper's settings, read whole, every fault named."""

import pytest

from meada.errors import MeadaError
from meada.runs.functions import make
from meada.runs.recipe import from_toml, load_recipe, resolve, to_toml
from meada.runs.recipe_families import recipe_names


def test_every_shipped_recipe_survives_a_round_trip(tmp_path):
    path, changed = tmp_path / "recipe.toml", []
    for name in recipe_names():
        recipe = load_recipe(name)
        path.write_text(to_toml(recipe))
        changed += [name] if from_toml(path) != recipe else []
    assert not changed and len(recipe_names()) > 100


def test_the_papers_settings_on_digits():
    recipe = load_recipe("digits/meada")
    assert recipe.descent.model_dump() == {
        "name": "adam", "lr": 1e-4, "weight_decay": 0.0, "momentum": 0.0, "nesterov": False,
        "schedule": "constant",
    }  # fmt: skip
    plan = recipe.plan
    assert (plan.rounds, plan.min_steps, plan.total_steps, plan.batch_size) == (3, 100, 10_000, 32)
    wanted = {"name": "meada", "beta": 10.0, "steps": 15, "step_size": 1.0, "gamma": 1.0,
              "units": "official", "units_batch": 32, "grow": "pool"}  # fmt: skip
    assert wanted.items() <= recipe.method.items()
    assert recipe.data["train"] == 10_000 and recipe.network == {"name": "lenet"}


def test_digits_recipes_differ_in_the_method_alone():
    tables = [load_recipe(f"digits/{m}").model_dump() for m in ("erm", "ada", "meada")]
    for table in tables:
        for key in ("name", "note", "method"):
            table.pop(key)
    assert tables[0] == tables[1] == tables[2]


def test_ada_is_meada_without_entropy():
    ada, meada = load_recipe("digits/ada").method, load_recipe("digits/meada").method
    assert ada.pop("beta") == 0.0 and meada.pop("beta") == 10.0
    assert {**ada, "name": ""} == {**meada, "name": ""}


def test_changes_reach_their_place():
    recipe = load_recipe("digits/meada", ["plan.rounds=2", "method.beta=1.5", "pool.store=uint8"])
    assert recipe.plan.rounds == 2 and recipe.method["beta"] == 1.5 and recipe.pool.store == "uint8"


@pytest.mark.parametrize(
    "change, sentence",
    [
        ("plan.round=2", "unknown key 'plan.round': did you mean 'rounds'"),
        ("plan.rounds=two", "key 'plan.rounds' must be "),
        ("plan.total_steps=-5", "key 'plan.total_steps' must be "),
        ("plan.total_steps=150", "3 rounds of 100 steps do not fit in total_steps=150"),
        ("method.bta=1", "unknown key 'method.bta': did you mean 'beta'"),
        ("method.beta=big", "key 'method.beta' must be "),
        ("method.grow=sideways", "key 'method.grow' must be "),
        ("method.name=meda", "unknown method 'meda': did you mean 'meada'"),
        ("network.name=lenett", "unknown network 'lenett': did you mean 'lenet'"),
        ("data.name=digit", "unknown data set 'digit': did you mean 'digits'"),
        ("network.num_classes=3", "unknown key 'network.num_classes'"),
        ("nonsense=1", "unknown key 'nonsense'"),
        ("nonsense", "must have the form a.b=c"),
        ("name.a=1", "'name' must be a table"),
    ],
)
def test_a_wrong_change_is_named(change, sentence):
    with pytest.raises(MeadaError) as caught:
        load_recipe("digits/meada", [change])
    assert sentence in str(caught.value)


def test_an_unknown_recipe_gives_the_nearest():
    with pytest.raises(MeadaError, match="unknown recipe 'digits/meda': did you mean"):
        load_recipe("digits/meda")


def test_a_file_of_ones_own(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('extends = "digits/meada"\n[method]\nbeta = 2.0\n')
    recipe = load_recipe(str(path))
    assert recipe.method["beta"] == 2.0 and recipe.method["steps"] == 15
    path.write_text("beta = = 2")
    with pytest.raises(MeadaError, match="mine.toml is not TOML"):
        load_recipe(str(path))


def test_another_method_starts_from_its_own_settings(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('extends = "digits/meada"\n[method]\nname = "erm"\n')
    assert load_recipe(str(path)).method == {"name": "erm"}


def test_a_table_that_is_missing_is_named():
    with pytest.raises(MeadaError, match="key 'data.name' is missing"):
        resolve({"name": "x"})


def test_pretrained_weights_of_a_built_in_network_need_no_leave():
    recipe = load_recipe("pacs-photo/tilted")
    assert recipe.network == {"name": "efficientnet_lite0", "pretrained": True} and recipe.freeze_batch_norm
    net = make("network", recipe.network, num_classes=7)
    assert next(m for m in reversed(list(net.modules())) if hasattr(m, "out_features")).out_features == 7
