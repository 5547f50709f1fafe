"""The paper's tables and figures, and a study of its settings, each as a list of runs."""

from collections.abc import Callable, Sequence
from itertools import product

from meada.errors import MeadaError, nearest
from meada.reproduce.item import Item
from meada.runs.recipe import Recipe, load_recipe, recipe_names, resolve

Set = Callable[[Sequence[str], int, list[str]], list[Item]]
Value = int | float | str  # of a setting

TABLE1 = ("erm", "par", "ada", "meada", "meada-bnn")
TABLE3 = ("erm", "cutout", "cutmix", "autoaugment", "mixup", "advtrain", "ada", "meada")
NETWORKS = ("allconv", "densenet", "wideresnet", "resnext")
TARGETS = ("art_painting", "cartoon", "photo", "sketch")
SMALL_RECIPES = "cifar10c-small/"
ROUNDS = (1, 2, 3)  # Figure 1's K; K = 0 is ERM


def digits(methods: Sequence[str], seeds: int, changes: list[str]) -> list[Item]:
    """Table 1; the control ``noise`` where it is asked for."""
    cells = product(range(seeds), methods or TABLE1)
    return [Item(load_recipe(f"digits/{m}", changes, seed=seed)) for seed, m in cells]


def figure1(methods: Sequence[str], seeds: int, changes: list[str]) -> list[Item]:
    """Accuracy against K; K = 3 is Table 1's own run."""
    items = []
    for seed in range(seeds):
        items.append(Item(load_recipe("digits/erm", changes, seed=seed)))
        for method, rounds in product(methods or ("ada", "meada"), ROUNDS):
            recipe = load_recipe(f"digits/{method}", changes, seed=seed)
            items.append(Item(with_rounds(recipe, rounds)))
    return items


def with_rounds(recipe: Recipe, rounds: int) -> Recipe:
    """The same at another K, also where a scale has shrunk the recipe's own."""
    plan = {**recipe.plan.model_dump(), "rounds": rounds}
    return resolve({**recipe.model_dump(), "plan": plan})


def table3(data: str, methods: Sequence[str], seeds: int, changes: list[str]) -> list[Item]:
    """Each method with each network; ``wideresnet-meada`` asks for one cell."""
    asked = methods or TABLE3
    whole = [m for m in asked if m.partition("-")[0] not in NETWORKS]
    cells = [f"{n}-{m}" for n, m in product(NETWORKS, whole)] + [m for m in asked if m not in whole]
    return [Item(load_recipe(f"{data}/{cell}", changes, seed=seed)) for seed, cell in product(range(seeds), cells)]


def cifar10c(methods: Sequence[str], seeds: int, changes: list[str]) -> list[Item]:
    return table3("cifar10c", methods, seeds, changes)


def cifar100c(methods: Sequence[str], seeds: int, changes: list[str]) -> list[Item]:
    return table3("cifar100c", methods, seeds, changes)


def cifar10c_small(methods: Sequence[str], seeds: int, changes: list[str]) -> list[Item]:
    """A network that two cores train in minutes, 5,000 images: every method that has a recipe."""
    there = [n.removeprefix(SMALL_RECIPES) for n in recipe_names() if n.startswith(SMALL_RECIPES)]
    return [
        Item(load_recipe(f"{SMALL_RECIPES}{method}", changes, seed=seed))
        for seed, method in product(range(seeds), methods or there)
    ]


def figure2(methods: Sequence[str], seeds: int, changes: list[str]) -> list[Item]:
    """Each corruption, ERM and ME-ADA: WideResNet on CIFAR-10-C, two cells of Table 3."""
    return cifar10c([f"wideresnet-{m}" for m in methods or ("erm", "meada")], seeds, changes)


def pacs(methods: Sequence[str], seeds: int, changes: list[str], form: str = "") -> list[Item]:
    """Table 2: each method with each domain held out; every method that has recipes by default."""
    there = [name for name in recipe_names() if name.startswith("pacs/")]
    known = [n.removeprefix("pacs/").removesuffix("-sketch") for n in there if n[-7:] == "-sketch"]
    return [
        Item(load_recipe(f"pacs/{method}-{target}{form}", changes, seed=seed))
        for seed, method, target in product(range(seeds), methods or known, TARGETS)
    ]


def pacs_small(methods: Sequence[str], seeds: int, changes: list[str]) -> list[Item]:
    """The scaled form of each, about 20 minutes on two cores."""
    return pacs(methods, seeds, changes, form="-small")


# The study: one setting at a time around the paper's values, on a tenth of the source and steps.
SHORT = ("data.train=1000", "plan.total_steps=1000", "plan.rounds=2", "evaluation.every=100")
STUDY: dict[str, tuple[Value, ...]] = {  # the first of each is the paper's, and the centre's
    "beta": (10.0, 0.0, 1.0, 100.0),
    "gamma": (1.0, 0.0, 0.1, 10.0),
    "step_size": (1.0, 0.1, 0.3, 3.0, 10.0),  # the paper's eta
    "steps": (15, 5, 45),  # the paper's T_max
    "grow": ("pool", "latest", "source"),
    "units": ("official", "sample"),  # the paper's numbers, and the same read as sums
}


def sensitivity(methods: Sequence[str], seeds: int, changes: list[str]) -> list[Item]:
    """Short digits runs: ERM, ME-ADA as published, and one setting of it changed at a time."""
    if methods:
        raise MeadaError("--methods must be left out for the set 'sensitivity': it studies ME-ADA alone")
    items = []
    for seed in range(seeds):
        items += [short(method, changes, seed) for method in ("erm", "meada")]
        for setting, (_, *others) in STUDY.items():
            items += [short("meada", [*changes, f"method.{setting}={value}"], seed) for value in others]
    return items


def short(method: str, changes: list[str], seed: int) -> Item:
    named = f"name=sensitivity/{method}"
    return Item(load_recipe(f"digits/{method}", [named, *SHORT, *changes], seed=seed))


SETS: dict[str, Set] = {
    "digits": digits,
    "figure1": figure1,
    "cifar10c": cifar10c,
    "cifar100c": cifar100c,
    "cifar10c-small": cifar10c_small,
    "figure2": figure2,
    "pacs": pacs,
    "pacs-small": pacs_small,
    "sensitivity": sensitivity,
}
FOLDERS = {"figure1": "digits", "figure2": "cifar10c", "pacs-small": "pacs"}  # runs they share


def items_of(name: str, methods: Sequence[str], seeds: int, changes: list[str]) -> list[Item]:
    if name not in SETS:
        raise MeadaError(f"unknown set of runs '{name}': " + nearest(name, SETS))
    if seeds < 1:
        raise MeadaError(f"--seeds must be 1 or more, got {seeds}")
    chosen = {item.name: item for item in SETS[name](methods, seeds, changes)}
    return list(chosen.values())  # a run that is asked for twice is one run
