"""Names of the recipes that come with the package; nothing heavy is imported, so that a list of them is quick."""

from pathlib import Path

from meada.runs.recipe_families import braces, family, patterns

SHIPPED = Path(__file__).parent / "recipes"


def recipe_names() -> list[str]:
    return sorted([*_files(), *family(SHIPPED)])


def recipe_patterns() -> list[str]:
    """The same in a few lines: ``digits/{ada,erm}`` stands for two."""
    groups: dict[str, list[str]] = {}
    for name in _files():
        folder, _, last = name.rpartition("/")
        groups.setdefault(folder, []).append(last)
    return [*(f"{folder}/{braces(names)}" for folder, names in groups.items()), *patterns(SHIPPED)]


def _files() -> list[str]:
    paths = sorted(SHIPPED.rglob("*.toml"))
    return [str(p.relative_to(SHIPPED).with_suffix("")) for p in paths if p.name[0] != "_"]
