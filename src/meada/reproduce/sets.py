"""Lists of runs for the paper's tables and figures, the sensitivity study, and grids of settings."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import product

from meada.errors import MeadaError, nearest
from meada.reproduce import Item
from meada.runs.recipe import Recipe, load_recipe, resolve
from meada.runs.recipe_families import recipe_names
from meada.settings import flattened

Value = int | float | str  # of a setting

TABLE1 = ("erm", "par", "ada", "meada", "meada-bnn")
TABLE3 = ("erm", "cutout", "cutmix", "autoaugment", "mixup", "advtrain", "ada", "meada")
NETWORKS = ("allconv", "densenet", "wideresnet", "resnext")
TARGETS = ("art_painting", "cartoon", "photo", "sketch")
ROUNDS = (1, 2, 3)  # Figure 1's K; K = 0 is ERM


def table1(methods: Sequence[str]) -> list[str]:
    """Table 1; the control ``noise`` only if it is named."""
    return [f"digits/{method}" for method in methods or TABLE1]


def table2(methods: Sequence[str], form: str = "") -> list[str]:
    """Each method with each domain held out; every method that has recipes by default."""
    every = [name.removeprefix("pacs/") for name in recipe_names() if name.startswith("pacs/")]
    known = [name.removesuffix("-sketch") for name in every if name.endswith("-sketch")]
    return [f"pacs/{method}-{target}{form}" for method, target in product(methods or known, TARGETS)]


def small_cifar(methods: Sequence[str]) -> list[str]:
    """WideResNet-16-1 on 5,000 images, minutes on two cores: every method with a recipe."""
    names = [f"cifar10c-small/{method}" for method in methods]
    return names or [name for name in recipe_names() if name.startswith("cifar10c-small/")]


def table3(methods: Sequence[str], data: str) -> list[str]:
    """Each method with each network; ``wideresnet-meada`` asks for one cell."""
    asked = methods or TABLE3
    every = [m for m in asked if m.partition("-")[0] not in NETWORKS]
    cells = [f"{n}-{m}" for n, m in product(NETWORKS, every)] + [m for m in asked if m not in every]
    return [f"{data}/{cell}" for cell in cells]


def figure2(methods: Sequence[str]) -> list[str]:
    """Each corruption, ERM and ME-ADA: WideResNet on CIFAR-10-C, two cells of Table 3."""
    return table3([f"wideresnet-{m}" for m in methods or ("erm", "meada")], "cifar10c")


def figure1(methods: Sequence[str], seed: int, changes: list[str]) -> list[Item]:
    """Accuracy against K; K = 3 is the run of Table 1."""
    items = [Item(load_recipe("digits/erm", changes, seed=seed))]
    for method, rounds in product([m for m in methods or ("ada", "meada") if m != "erm"], ROUNDS):
        recipe = load_recipe(f"digits/{method}", changes, seed=seed)
        items.append(Item(with_rounds(recipe, rounds)))
    return items


def with_rounds(recipe: Recipe, rounds: int) -> Recipe:
    """The same run with another K, also for recipes that are scaled down."""
    plan = {**recipe.plan.model_dump(), "rounds": rounds}
    return resolve({**recipe.model_dump(), "plan": plan})


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


def sensitivity(methods: Sequence[str], seed: int, changes: list[str]) -> list[Item]:
    """Short digits runs: ERM, ME-ADA as published, and one setting of it changed at a time."""
    if methods:
        raise MeadaError("--methods must be left out for the set 'sensitivity', which has only ME-ADA and ERM")
    items = [short(method, changes, seed) for method in ("erm", "meada")]
    for setting, (_, *others) in STUDY.items():
        items += [short("meada", [*changes, f"method.{setting}={value}"], seed) for value in others]
    return items


def short(method: str, changes: list[str], seed: int) -> Item:
    named = f"name=sensitivity/{method}"
    return Item(load_recipe(f"digits/{method}", [named, *SHORT, *changes], seed=seed))


RECIPES: dict[str, Callable[[Sequence[str]], list[str]]] = {  # sets of recipes, each run with every seed
    "digits": table1,
    "cifar10c": partial(table3, data="cifar10c"),
    "cifar100c": partial(table3, data="cifar100c"),
    "cifar10c-small": small_cifar,
    "figure2": figure2,
    "pacs": table2,
    "pacs-small": partial(table2, form="-small"),  # about 20 minutes each on two cores
}
RUNS = {"figure1": figure1, "sensitivity": sensitivity}  # sets that change a recipe's settings
FOLDERS = {"figure1": "digits", "figure2": "cifar10c", "pacs-small": "pacs"}  # runs they share


def seeds_by_method(text: str, methods: Sequence[str] = ()) -> list[tuple[list[str], int]]:
    """Number of seeds by method.

    >>> seeds_by_method("3", ["erm", "ada"]), seeds_by_method("erm=10,ada=5")
    ([(['erm', 'ada'], 3)], [(['erm'], 10), (['ada'], 5)])
    """
    if "=" in text and methods:
        raise MeadaError(f"--methods must be left out where --seeds names the methods, got --seeds {text}")
    parts = [part.rpartition("=") for part in text.split(",")]
    plain = len(parts) == 1 and not parts[0][1]
    if not all(count.strip().isdecimal() and (plain or sign) for _, sign, count in parts):
        raise MeadaError(f"--seeds must be a number or METHOD=NUMBER,METHOD=NUMBER, got {text}")
    return [([name.strip()] if sign else list(methods), int(count)) for name, sign, count in parts]


def items_of(name: str, methods: Sequence[str], seeds: int, changes: list[str]) -> list[Item]:
    if name not in RECIPES and name not in RUNS:
        raise MeadaError(f"unknown set of runs '{name}': " + nearest(name, [*RECIPES, *RUNS]))
    _refuse_seed(seeds, changes)
    if name in RUNS:
        return once(item for seed in range(seeds) for item in RUNS[name](methods, seed, changes))
    recipes = product(range(seeds), RECIPES[name](methods))
    return once(Item(load_recipe(recipe, changes, seed=seed)) for seed, recipe in recipes)


def _refuse_seed(seeds: int, changes: Sequence[str]) -> None:
    if seeds < 1:
        raise MeadaError(f"--seeds must be 1 or more, got {seeds}")
    if any(change.partition("=")[0].strip() == "seed" for change in changes):
        raise MeadaError("--set must not name seed: use --seeds for the number of seeds")


def once(items: Iterable[Item]) -> list[Item]:
    """Drop runs that are listed twice."""
    return list({item.name: item for item in items}.values())


def sweep(recipe: str, grid: Sequence[str], seeds: int, changes: list[str], trust: Sequence[str] = ()) -> list[Item]:
    """One run per seed and per combination of values.

    ``grid`` has entries such as ``beta=1,10,100`` or ``method.beta=1,10,100``.
    """
    _refuse_seed(seeds, changes)
    plain = load_recipe(recipe, changes, trust=trust)
    axes = [axis(plain, entry) for entry in grid]
    keys = [values[0].partition("=")[0] for values in axes]
    if len(set(keys)) < len(keys):
        raise MeadaError(f"--grid must name each key once, with all its values, got {', '.join(keys)}")
    cells = product(range(seeds), product(*axes))
    return once(Item(load_recipe(recipe, [*changes, *cell], trust=trust, seed=seed), cell) for seed, cell in cells)


def axis(recipe: Recipe, entry: str) -> list[str]:
    """The changes that one entry of the grid stands for.

    >>> axis(load_recipe("digits/meada"), "beta=1,10")
    ['method.beta=1', 'method.beta=10']
    """
    key, sign, text = entry.partition("=")
    values = [value.strip() for value in text.split(",")]
    if not sign or not key.strip() or not all(values):
        raise MeadaError(f"--grid must be key=value,value, as in beta=1,10,100, got {entry}")
    if len(set(values)) < len(values) or {value.lower().lstrip("+-") for value in values} & {"nan", "inf"}:
        raise MeadaError(f"--grid {entry}: values must be finite and different from each other")
    name = full_key(recipe, key.strip())
    return [f"{name}={value}" for value in values]


def full_key(recipe: Recipe, key: str) -> str:
    """A key with its table; the table may be left out if only one has such a key."""
    known = sorted(flattened(recipe.model_dump()))
    if key == "seed":
        raise MeadaError("--grid must not name seed: use --seeds for the number of seeds")
    if key in known:
        return key
    found = [name for name in known if name.rpartition(".")[2] == key]
    if len(found) > 1:
        raise MeadaError(f"--grid must name one key, got {key}, which may mean {' or '.join(found)}; write it in full")
    if not found:
        raise MeadaError(f"--grid must name a key of the recipe, got {key}; {nearest(key, known)}")
    return found[0]
