"""Imports point one way: from what runs experiments down to what states the maths."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src" / "meada"
LAYERS = [  # a module may import from its own layer and those before it
    ["version", "errors", "types", "files", "streams", "clock", "settings", "allocator"],
    ["distributed"],
    ["entropy", "transport", "theory", "environment", "device", "family"],
    ["objective", "networks"],
    ["storage", "units", "maximise"],
    ["pool", "optimise", "datasets", "corruptions"],
    ["methods"],
    ["parallel"],
    ["minimise"],
    ["algorithm", "evaluation"],
    ["checkpoint", "recipe", "fitting"],
    ["folder"],
    ["journal", "run", "trial"],
    ["reports", "bench", "reproduce", "deploy", "robustify"],
    ["cli"],
    ["__main__", "__init__"],
]
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
FILES = sorted(ROOT.rglob("*.py"))


def home(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    names = [n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module]
    names += [a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names]
    return {name.split(".")[1] for name in names if name.startswith("meada.")}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_downwards(path):
    above = {name for name in imports(path) if RANK[name] > RANK[home(path)]}
    assert not above, f"{home(path)} is below {sorted(above)}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_stay_small(path):
    assert len(path.read_text().splitlines()) < 300


def test_every_module_has_a_layer():
    assert {home(path) for path in FILES} <= RANK.keys()


def test_methods_do_not_know_of_runs():
    for path in (ROOT / "methods").rglob("*.py"):
        assert imports(path).isdisjoint({"run", "algorithm", "minimise", "recipe", "journal"})
