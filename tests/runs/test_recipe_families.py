"""Families: every cell of a table from one file; Table 3 with the supplement's settings."""

import pytest

from meada.errors import MeadaError
from meada.methods.parts.compose import augmented
from meada.runs.recipe import load_recipe, method_name, method_of, resolve, to_toml
from meada.runs.recipe_families import family, recipe_names

NETWORKS = ("allconv", "densenet", "wideresnet", "resnext")
METHODS = ("erm", "cutout", "cutmix", "autoaugment", "mixup", "advtrain", "ada", "meada", "augmix")

# The supplement's table: K, T, T_min, T_max, alpha, eta, gamma, beta.
SUPPLEMENT = {
    "cifar10c/allconv": (2, 100, 10, 15, 0.1, 20.0, 0.1, 10.0),
    "cifar10c/densenet": (2, 200, 10, 15, 0.1, 20.0, 1.0, 100.0),
    "cifar10c/wideresnet": (2, 100, 10, 15, 0.1, 20.0, 1.0, 10.0),
    "cifar10c/resnext": (2, 200, 10, 15, 0.1, 20.0, 1.0, 10.0),
    "cifar100c/allconv": (2, 100, 10, 15, 0.1, 20.0, 0.1, 10.0),
    "cifar100c/densenet": (2, 200, 10, 15, 0.1, 20.0, 10.0, 10.0),
    "cifar100c/wideresnet": (2, 100, 10, 15, 0.1, 20.0, 1.0, 10.0),
    "cifar100c/resnext": (2, 200, 10, 15, 0.1, 20.0, 10.0, 10.0),
}


def test_every_cell_of_table_3_has_a_recipe_by_its_name():
    wanted = {f"{cell}-{method}" for cell in SUPPLEMENT for method in METHODS}
    assert wanted <= set(recipe_names())


@pytest.mark.parametrize("cell", SUPPLEMENT)
def test_settings_are_the_supplements(cell):
    recipe = load_recipe(f"{cell}-meada")
    plan, method = recipe.plan, recipe.method
    assert SUPPLEMENT[cell] == (
        plan.rounds, plan.total_steps, plan.min_steps, method["steps"], recipe.descent.lr,
        method["step_size"], method["gamma"], method["beta"],
    )  # fmt: skip
    assert plan.unit == "epochs" and plan.batch_size == method["units_batch"] == 128
    assert method["units"] == "official" and recipe.pool.store == "uint8"
    descent = recipe.descent
    decay = 1e-4 if "densenet" in cell else 5e-4
    assert (descent.name, descent.momentum, descent.nesterov, descent.schedule) == (
        "sgd", 0.9, True, "cosine",
    )  # fmt: skip
    assert descent.weight_decay == decay
    assert recipe.network["name"] == cell.split("/")[1]
    assert recipe.data["name"] == cell.split("/")[0].removesuffix("c")


def test_ada_is_meada_without_entropy():
    ada, meada = (load_recipe(f"cifar100c/densenet-{m}").method for m in ("ada", "meada"))
    assert ada.pop("beta") == 0.0 and meada.pop("beta") == 10.0
    assert {**ada, "name": ""} == {**meada, "name": ""}


def test_the_methods_of_a_cell_differ_in_the_method_alone():
    tables = [load_recipe(f"cifar10c/wideresnet-{m}").model_dump() for m in METHODS]
    for table in tables:
        for key in ("name", "note", "method"):
            table.pop(key)
    assert all(table == tables[0] for table in tables)


def test_a_composition_is_a_recipe():
    recipe = load_recipe("cifar10c/wideresnet-meada-mixup")
    assert recipe.method["name"] == "meada" and recipe.loss == {"name": "mixup", "alpha": 1.0}
    assert method_name(recipe) == "meada+mixup"
    assert method_of(recipe).growth(10, 2) == 40
    plain = load_recipe("digits/meada", ["loss.name=mixup", "loss.alpha=0.5"])
    assert plain.loss == {"name": "mixup", "alpha": 0.5} and plain.augment == {}


def test_the_loss_of_a_composition_sees_the_augmented_batch(monkeypatch):
    seen = []
    watched = lambda method, augment: seen.append(method) or augmented(method, augment)
    monkeypatch.setattr("meada.runs.recipe.augmented", watched)
    method_of(load_recipe("cifar10c/wideresnet-meada-mixup"))
    assert seen[-1].title == "ME-ADA + Mixup"


def test_a_family_states_its_axes_and_how_its_members_are_called(tmp_path, monkeypatch):
    (tmp_path / "_letters.toml").write_text("""
axes = ["big", "small"]
names = "{small}/{big}"
notes = "{big} then {small}"
ascent = { steps = 3 }
shared = { plan = { rounds = 1, total_steps = 9 }, method = { name = "m" } }
supplement = { b = { gamma = 2.0, beta = 5.0 } }
[big]
A = { title = "first", plan = { rounds = 2 }, supplement = ["gamma"] }
B = { title = "second" }
[small]
b = { title = "last", plan = { total_steps = 4 } }
""")
    monkeypatch.setattr("meada.runs.recipe_families.FAMILIES", ("_letters.toml",))
    assert family(tmp_path) == {
        "b/A": {
            "note": "first then last", "plan": {"rounds": 2, "total_steps": 4},
            "method": {"name": "m", "steps": 3, "gamma": 2.0},
        },
        "b/B": {
            "note": "second then last", "plan": {"rounds": 1, "total_steps": 4},
            "method": {"name": "m"},
        },
    }  # fmt: skip


def test_scale_shrinks_data_epochs_and_rounds_and_says_so():
    whole = load_recipe("cifar10c/wideresnet-meada")
    small = load_recipe("cifar10c/wideresnet-meada", ["scale=0.1"])
    assert (small.data["train"], small.data["validation"], small.data["test"]) == (4800, 200, 1000)
    plan = small.plan
    assert (plan.rounds, plan.min_steps, plan.total_steps, plan.batch_size) == (1, 1, 10, 128)
    assert small.scaled == 0.1 and whole.scaled == 1.0
    assert small.method == whole.method and small.descent == whole.descent
    assert load_recipe("cifar10c/wideresnet-meada", scale=0.1) == small
    half = load_recipe("cifar10c/wideresnet-meada", scale=0.5)
    assert half.plan.rounds == 1 and half.plan.total_steps == 50
    assert load_recipe("digits/meada", scale=0.5).data["train"] == 5_000


def test_a_scaled_recipe_that_is_read_again_is_not_scaled_again(tmp_path):
    small = load_recipe("cifar10c/wideresnet-erm", scale=0.25)
    path = tmp_path / "recipe.toml"
    path.write_text(to_toml(small))
    assert load_recipe(str(path)) == small


@pytest.mark.parametrize(
    "change, sentence",
    [
        ("scale=0", "scale must be a number above 0 and at most 1, got 0"),
        ("scale=2", "at most 1, got 2"),
        ("scale=half", "at most 1, got 'half'"),
        ("loss.name=mixupp", "unknown method 'mixupp': did you mean 'mixup'"),
        ("augment.name=flip", "unknown augmentation 'flip': did you mean 'flip_crop'"),
        ("augment.padding=-1", "padding must be 0 or more pixels, got -1"),
        ("augment.pading=1", "unknown key 'augment.pading'"),
    ],
)
def test_a_wrong_change_is_named(change, sentence):
    with pytest.raises(MeadaError) as caught:
        load_recipe("cifar10c/wideresnet-meada", [change])
    assert sentence in str(caught.value)


def test_an_empty_composition_is_none():
    recipe = load_recipe("cifar10c/wideresnet-erm")
    assert resolve({**recipe.model_dump(), "loss": {}, "augment": {}}).augment == {}
