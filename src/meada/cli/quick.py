"""Check names and paths before torch is imported, so that a typo is answered at once."""

import ast
from collections.abc import Callable, Mapping
from functools import cache, wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from meada.errors import MeadaError, nearest
from meada.runs.recipe_families import SHIPPED, recipe_names

ROOT = Path(__file__).parents[1]
TABLES = {
    "methods": ("methods/__init__.py", "METHODS"),
    "networks": ("networks/__init__.py", "NETWORKS"),
    "datasets": ("datasets/__init__.py", "DATASETS"),
    "spaces": ("spaces/__init__.py", "SPACES"),
    "rules": ("evaluation/selection.py", "RULES"),
}


# Libraries that only some verbs need, and the extra that installs each.
EXTRAS = {
    "matplotlib": "report",
    "sklearn": "quickstart",
    "mlxtend": "quickstart",
    "onnx": "export",
    "onnxruntime": "export",
    "onnxscript": "export",
    "ray": "ray",
}

Trust = Annotated[
    list[str] | None,
    typer.Option(
        "--trust", "--network", "--method", "--space", "--data",
        help="Allow the code that the file names: FILE.py:function or module:function. It runs on this machine.",
    ),
]  # fmt: skip


def missing(error: ModuleNotFoundError) -> str:
    """What to install; a library that no extra has is a fault of ours, and raised again.

    >>> missing(ModuleNotFoundError("", name="matplotlib.figure"))
    "matplotlib must be installed for this: pip install 'meada[report]'"
    """
    name = (error.name or "").partition(".")[0]
    if name not in EXTRAS:
        raise error
    return f"{name} must be installed for this: pip install 'meada[{EXTRAS[name]}]'"


@cache
def names(table: str) -> list[str]:
    """The keys of a table, or the items of a tuple, without importing the module that has it.

    >>> names("rules")
    ['last', 'averaged', 'source_val', 'crafted', 'oracle']
    """
    file, name = TABLES[table]
    for node in ast.parse((ROOT / file).read_text(encoding="utf-8")).body:
        target = node.target if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [None])[0]
        if isinstance(target, ast.Name) and target.id == name:
            value: Any = node.value  # type: ignore[attr-defined]
            keys: list[Any] = value.keys if isinstance(value, ast.Dict) else value.elts
            return [ast.literal_eval(key) for key in keys]
    raise AssertionError(f"{file} has no table {name}")


def answer_typos(app: typer.Typer) -> None:
    """Check what every verb is given before it is called."""
    for command in app.registered_commands:
        if command.callback is not None:
            command.callback = _checked(command.callback)


def _checked(verb: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(verb)
    def run(**given: Any) -> Any:
        check(verb.__name__, given)
        return verb(**given)

    return run


def check(verb: str, given: Mapping[str, Any]) -> None:
    """Refuse names that no table has and runs that are not there."""
    for key, table in (("rule", "rules"), ("method", "methods"), ("network", "networks")):
        _check_name(key, given.get(key), names(table))
    _check_recipe(given.get("recipe"))
    for key in ("run", "model", "runs", "folder") if verb != "robustify" else ():
        for path in _paths(given.get(key)):
            if not path.exists() and not (key == "model" and path.parts[0] == "hf:"):
                raise MeadaError(f"{path} holds no run to {verb}: there is no such folder")
    for change in given.get("set_") or []:
        if not change.partition("=")[0].strip() or "=" not in change:
            raise MeadaError(f"--set must have the form a.b=c, as in plan.rounds=2, got {change}")


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
        raise MeadaError(f"unknown recipe '{name}': {nearest(name, recipe_names())}")
