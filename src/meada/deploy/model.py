"""A model file that says what it is: weights, classes, and the recipe that builds its network."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError, safe_open
from torch import nn

from meada import __version__
from meada.errors import MeadaError
from meada.runs.checkpoint import load_weights_into, save_weights
from meada.runs.parts import refuse_disagreement
from meada.runs.recipe import Recipe, resolve, to_toml
from meada.runs.run import build_network
from meada.runs.run_folder import RunFolder

FORMAT = "meada-model/1"
PLAN = "plan.json"  # what marks a folder of `meada robustify`
SIDE = 32  # of the data sets that leave no choice: digits, CIFAR, the embedded ones


@dataclass(frozen=True)
class Model:
    """A classifier from pixels in [0, 1] of (N, 3, side, side) to logits."""

    net: nn.Module
    classes: tuple[str, ...]
    side: int
    recipe: Recipe
    about: dict[str, str]  # the file's metadata
    path: Path
    run: RunFolder | None  # the run that it comes from, where its folder was given


def save_model(path: Path, net: nn.Module, recipe: Recipe, classes: tuple[str, ...]) -> None:
    """Weights with everything that is needed to use them in the metadata."""
    save_weights(path, net, {
        "format": FORMAT,
        "meada": __version__,
        "method": recipe.method["name"],
        "network": recipe.network["name"],
        "classes": "\n".join(classes),
        "side": str(_side(recipe)),
        "input": "RGB pixels in [0, 1], (N, 3, side, side); normalisation is in the network",
        "recipe_toml": to_toml(recipe),
    })  # fmt: skip


def open_model(path: Path, trust: Iterable[str] = ()) -> Model:
    """Of a run's folder, of a folder of ``meada robustify``, or of its ``model.safetensors``.

    Code that the file names is run only if its name is in ``trust``.
    """
    file, run = _place(path)
    about = _metadata(file)
    if "recipe_toml" in about:
        recipe = resolve(tomllib.loads(about["recipe_toml"]), trust)
        refuse_disagreement(recipe.model_dump(), trust)
    elif run is not None:
        recipe = run.load_recipe(trust)
    else:
        raise MeadaError(f"{file} does not say what network it is of: give the run's folder")
    if not about.get("classes"):
        raise MeadaError(f"{file} names no classes: it was not written by meada")
    classes = tuple(about["classes"].split("\n"))
    net = build_network(recipe, len(classes), file=False)
    load_weights_into(net, file)
    side = int(about.get("side", _side(recipe)))
    return Model(net.eval(), classes, side, recipe, about, file, run)


def method_folder(path: Path) -> RunFolder | None:
    """The run that a model comes from: the folder itself, or the method's below it in folders of version 0.1."""
    if not (path / PLAN).is_file():
        return RunFolder(path)
    runs = [p.parent for p in path.glob("*/recipe.toml") if p.parent.name != "erm"]
    return RunFolder(runs[0]) if len(runs) == 1 else None


def _place(path: Path) -> tuple[Path, RunFolder | None]:
    if path.is_file():
        return path, None
    if not path.is_dir():
        raise MeadaError(f"{path} is not there: a run's folder or a model.safetensors is needed")
    if not (path / PLAN).is_file() and not RunFolder(path).recipe.is_file():
        raise MeadaError(f"{path} holds no run: neither {PLAN} nor recipe.toml is there")
    file = path / "model.safetensors"
    if not file.is_file():
        raise MeadaError(f"{file} is not there: the run is not finished")
    return file, method_folder(path)


def _metadata(file: Path) -> dict[str, str]:
    try:
        with safe_open(file, framework="pt") as opened:
            return dict(opened.metadata() or {})
    except (SafetensorError, OSError) as error:
        raise MeadaError(f"{file} cannot be read as safetensors: {error}") from None


def _side(recipe: Recipe) -> int:
    return int(recipe.data.get("side", SIDE))
