"""Imports point one way: from what runs experiments down to what states the maths."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1] / "src" / "meada"
# From the bottom up. A module may import from its own package and from those above it in this list.
ORDER = [
    "types", "errors", "files", "streams", "settings", "lookup",
    "entropy", "transport", "machine", "theory", "objective",
    "images", "corruptions", "networks", "units", "spaces", "maximise",
    "pool", "averaging", "methods", "minimise", "datasets", "evaluation", "algorithm",
    "runs", "reproduce", "reports", "deploy", "robustify", "integrations", "cli",
    "__init__", "__main__",
]  # fmt: skip
FILES = sorted(ROOT.rglob("*.py"))
TOP_LEVEL = 16  # modules, ``__init__`` and ``__main__`` among them
LONGEST = 300  # lines in a file


def home(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    names = [n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module]
    names += [a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names]
    return {name.split(".")[1] for name in names if name.startswith("meada.")}


def upward(path: Path, known: set[str]) -> list[str]:
    here = ORDER.index(home(path))
    return sorted(name for name in known if name != home(path) and ORDER.index(name) > here)


def test_every_module_has_a_rank():
    assert {home(path) for path in FILES} <= set(ORDER)


def test_imports_point_downwards():
    wrong = {str(p.relative_to(ROOT)): upward(p, imports(p)) for p in FILES}
    assert not {path: above for path, above in wrong.items() if above}


def test_an_upward_import_is_found():
    assert upward(ROOT / "corruptions" / "frost.py", {"datasets", "errors"}) == ["datasets"]


def test_files_stay_small():
    lengths = {str(p.relative_to(ROOT)): len(p.read_text().splitlines()) for p in FILES}
    assert not {path: n for path, n in lengths.items() if n > LONGEST}


def test_a_run_has_few_parts():
    tree = ast.parse((ROOT / "runs" / "run.py").read_text())
    assert sum(isinstance(n, ast.ImportFrom) and (n.module or "").startswith("meada") for n in tree.body) <= 15


def test_the_top_level_stays_small():
    assert len(list(ROOT.glob("*.py"))) <= TOP_LEVEL


def test_methods_do_not_import_runs():
    for path in (ROOT / "methods").rglob("*.py"):
        assert imports(path).isdisjoint({"runs", "algorithm", "minimise"}), path
