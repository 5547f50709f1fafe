"""Sets of runs: the paper's tables and figures. A run is identified by its recipe and trained once."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from meada.runs.identity import recipe_in, same_experiment
from meada.runs.recipe import Recipe, to_toml
from meada.runs.run_folder import RunFolder


@dataclass(frozen=True)
class Item:
    """A run of a set, identified by its recipe."""

    recipe: Recipe
    changes: tuple[str, ...] = ()  # of a sweep's grid, for people to read

    @cached_property
    def name(self) -> str:
        digest = sha256(to_toml(self.recipe).encode()).hexdigest()[:8]
        return f"{self.recipe.name.replace('/', '-')}-seed{self.recipe.seed}-{digest}"

    def folder(self, out: Path) -> RunFolder:
        """The run's folder in ``out``, existing or new.

        A run that was begun under another name is found by its recipe: a setting that came into
        being later stands at its default in both, and changes the digest alone.
        """
        own = RunFolder(out / self.name)
        if own.recipe.exists():
            return own
        same = (f for f in runs(out) if same_experiment(recipe_in(f), self.recipe))
        return next(same, own)

    def done(self, out: Path) -> bool:
        return self.folder(out).finished


def runs(out: Path) -> Iterator[RunFolder]:
    """All runs that were started in ``out``."""
    return (RunFolder(path.parent) for path in sorted(out.glob("*/recipe.toml")))
