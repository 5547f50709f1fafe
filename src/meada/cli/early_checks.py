"""Check names and paths before torch is imported, so that a typo is answered at once."""

import ast
from collections.abc import Callable, Mapping
from functools import cache, wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from meada.errors import MeadaError, nearest
from meada.runs.recipe_families import SHIPPED, recipe_names, unknown_recipe

ROOT = Path(__file__).parents[1]
TABLES = {
    "methods": ("methods/__init__.py", "METHODS"),
    "networks": ("networks/__init__.py", "NETWORKS"),
    "datasets": ("datasets/__init__.py", "DATASETS"),
    "spaces": ("spaces/__init__.py", "SPACES"),
    "rules": ("evaluation/selection.py", "RULES"),
    "sets of recipes": ("reproduce/sets.py", "RECIPES"),
    "sets of runs": ("reproduce/sets.py", "RUNS"),
}
RECIPE = ("runs/recipe.py", "Recipe")
SECTIONS = {  # tables of a recipe whose keys are the fields of a class
    "plan": ("algorithm/__init__.py", "Plan"),
    "descent": ("methods/parts/descent.py", "Descent"),
    "pool": ("runs/recipe.py", "PoolSettings"),
    "evaluation": ("runs/recipe.py", "EvaluationSettings"),
}


# Options that several verbs share.
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
ModelPath = Annotated[Path, typer.Argument(help="A run's folder, a robustify folder or its model.safetensors.")]
RecipeName = Annotated[str, typer.Argument(help="A recipe's name (meada list) or a TOML file.")]
Trust = Annotated[
    list[str] | None,
    typer.Option(
        "--trust", "--network", "--method", "--space", "--data",
        help="Allow the code that the file names: FILE.py:function or module:function. It runs on this machine.",
    ),
]  # fmt: skip


def missing(error: ModuleNotFoundError) -> str:
    """The message with the extra to install for figures; raise again if another library is missing: a bug.

    >>> missing(ModuleNotFoundError("", name="matplotlib.figure"))
    "matplotlib must be installed for this: pip install 'meada[report]'"
    """
    name = (error.name or "").partition(".")[0]
    if name != "matplotlib":
        raise error
    return "matplotlib must be installed for this: pip install 'meada[report]'"


@cache
def names(table: str) -> list[str]:
    """The keys of a dict or the items of a tuple, without importing its module.

    >>> names("rules")
    ['last', 'averaged', 'calibrated', 'source_val', 'crafted', 'oracle']
    """
    file, name = TABLES[table]
    for node in _parsed(file).body:
        target = node.target if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [None])[0]
        if isinstance(target, ast.Name) and target.id == name:
            value: Any = node.value  # type: ignore[attr-defined]
            keys: list[Any] = value.keys if isinstance(value, ast.Dict) else value.elts
            return [ast.literal_eval(key) for key in keys]
    raise AssertionError(f"{file} has no table {name}")


def _parsed(file: str) -> ast.Module:
    return ast.parse((ROOT / file).read_text(encoding="utf-8"))


@cache
def fields(file: str, name: str) -> list[str]:
    """The annotated fields of a class, without importing its module.

    >>> fields("algorithm/__init__.py", "Plan")[:2]
    ['rounds', 'min_steps']
    """
    body = next(node.body for node in _parsed(file).body if isinstance(node, ast.ClassDef) and node.name == name)
    return [n.target.id for n in body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)]


@cache
def domains() -> list[str]:
    """The names in the catalogue of published data: the first argument of each entry."""
    nodes = ast.walk(_parsed("datasets/published/catalogue.py"))
    calls = [node for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    makers = [call.args[0] for call in calls if call.func.id in ("Domain", "_cifar") and call.args]  # type: ignore[attr-defined]
    return [arg.value for arg in makers if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]


def answer_typos(app: typer.Typer) -> None:
    """Check the arguments of every command before it is called."""
    for command in app.registered_commands:
        command.callback = _checked(command.callback)  # type: ignore[arg-type]


def _checked(verb: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(verb)
    def run(**given: Any) -> Any:
        check(verb.__name__, given)
        return verb(**given)

    return run


def check(verb: str, given: Mapping[str, Any]) -> None:
    """Refuse unknown names and runs that do not exist."""
    for key, table in (("rule", "rules"), ("method", "methods"), ("network", "networks")):
        _check_name(key, given.get(key), names(table))
    _check_recipe(given.get("recipe"))
    for key in ("run", "model", "runs", "folder") if verb != "robustify" else ():
        for path in _paths(given.get(key)):
            if not path.exists() and not (key == "model" and path.parts[0] == "hf:"):
                raise MeadaError(f"{path} must be a folder with a run to {verb}, but does not exist")
    for change in given.get("set_") or []:
        key, sign, _ = change.partition("=")
        if not key.strip() or not sign:
            raise MeadaError(f"--set must have the form a.b=c, as in plan.rounds=2, got {change}")
        if verb in ("train", "sweep", "reproduce", "quickstart"):
            _check_key(key.strip())
    if verb == "reproduce":
        _check_name("set of runs", given["what"], [*names("sets of recipes"), *names("sets of runs")])
    elif verb in ("get", "check"):
        for name in given.get("names") or []:
            _check_name("domain", name, domains())
    elif verb == "corrupt":
        known, source = [name for name in domains() if name.startswith("cifar")], Path(given["source"])
        if given["source"] not in known and not source.is_dir() and source.suffix != ".npy":
            about = nearest(given["source"], known)
            raise MeadaError(f"'{given['source']}' is neither a folder nor a .npy file of images; {about}")
    elif verb == "robustify":
        for path in [*_paths(given.get("data")), *_paths(given.get("test"))]:
            if not path.exists():
                kinds = "a folder CLASS/*.jpg (or DOMAIN/CLASS/*.jpg) or a .csv file"
                raise MeadaError(f"{path} must be {kinds}, got nothing there")


def _check_key(key: str) -> None:
    """Refuse an unknown key; keys of methods, networks and data sets are checked when these are imported."""
    name, _, second = key.partition(".")
    known = [*fields(*RECIPE), "scale"]
    if second and name in SECTIONS:
        name, known = second, fields(*SECTIONS[name])
    if name not in known:
        raise MeadaError(f"unknown key '{key}': {nearest(name, known)}")


def _paths(value: Any) -> list[Path]:
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, Path)]


def _check_name(kind: str, name: Any, known: list[str]) -> None:
    if isinstance(name, str) and name and ":" not in name and name not in known:
        raise MeadaError(f"unknown {kind} '{name}': {nearest(name, known)}")


def _check_recipe(name: Any) -> None:
    if not isinstance(name, str) or (SHIPPED / f"{name}.toml").is_file():
        return
    known = Path(name).is_file() if name.endswith(".toml") else name in recipe_names()
    if not known:
        raise unknown_recipe(name)
