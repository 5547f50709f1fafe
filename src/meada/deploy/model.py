"""Model files: weights together with the classes and the recipe that builds the network."""

import math
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import nn

from meada import __version__
from meada.errors import MeadaError
from meada.runs.checkpoint import load_weights_into, metadata, save_weights
from meada.runs.functions import refuse_disagreement, refuse_untrusted
from meada.runs.network import build_network
from meada.runs.recipe import Recipe, resolve, to_toml
from meada.runs.run_folder import RunFolder
from meada.types import Images, Logits

if TYPE_CHECKING:
    from meada.deploy.predictions import Guess

FORMAT = "meada-model/1"
SEVERAL = "several_labels"  # metadata key of multi-label models
PLAN = "plan.json"  # a folder with this file was made by `meada robustify`
SIDE = 32  # of data sets with a fixed size: digits, CIFAR, the embedded ones
LARGEST = 4096  # pixels; a larger side in a file's metadata is refused


class Model(nn.Module):
    """A classifier in eval mode, from images (N, 3, side, side) in [0, 1] to logits."""

    def __init__(
        self, net: nn.Module, classes: tuple[str, ...], side: int, recipe: Recipe, about: Mapping[str, str],
        path: Path, run: RunFolder | None,
    ) -> None:  # fmt: skip
        """``about`` is the file's metadata, ``run`` its run's folder if there is one."""
        super().__init__()
        self.net, self.classes, self.side, self.recipe = net, classes, side, recipe
        self.about, self.path, self.run = dict(about), path, run
        self.eval()

    def forward(self, images: Images) -> Logits:
        return self.net(images)

    def predict(self, pictures: Any) -> "list[Guess]":
        """Label, probability and entropy (nats) of each picture.

        Args:
            pictures: one picture or several: paths (files, folders, patterns such as ``"photos/*.jpg"``), Pillow
                images, arrays (H, W, 3) or tensors (3, H, W) in 8 bits or in [0, 1]; or a batch of tensors.
        """
        from meada.deploy.predictions import guesses, prepared

        return guesses(self, prepared(pictures, self.side))

    @property
    def multilabel(self) -> bool:
        """Whether classes are independent labels, of which a picture may have several or none."""
        return self.about.get(SEVERAL) == "yes"

    @property
    def abstain_entropy(self) -> float | None:
        """Entropy (nats) above which predictions are unreliable; None if ``robustify`` found no threshold."""
        return _number(self.path, self.about, "abstain_entropy")


def load(path: str | Path, *, trust: Iterable[str] = ()) -> Model:
    """Load a model from a run's folder, a folder of ``meada robustify`` or a ``model.safetensors``.

    ``hf://USER/NAME`` or ``hf://USER/NAME@REVISION`` is a model on the Hugging Face Hub (extra ``hub``). Only its
    ``model.safetensors`` is downloaded, and it is checked like a local file. Code that a file names is run only if
    ``trust`` contains its name.

    >>> load("nowhere")
    Traceback (most recent call last):
    meada.errors.MeadaError: nowhere must be a run's folder or a model.safetensors, but does not exist
    """
    if not isinstance(path, str | Path):
        raise MeadaError(f"path must be a run's folder or a model.safetensors, got {type(path).__name__}")
    return open_model(Path(path), [trust] if isinstance(trust, str) else trust)


def save_model(
    path: Path, net: nn.Module, recipe: Recipe, classes: tuple[str, ...], about: Mapping[str, str] | None = None
) -> None:
    """Write weights with all metadata needed to use them, and ``about``."""
    held = {"format": FORMAT, "meada": __version__, **described(recipe, classes, _side(recipe))}
    save_weights(path, net, {**(about or {}), **held, "recipe_toml": to_toml(recipe)})


def described(recipe: Recipe, classes: tuple[str, ...], side: int) -> dict[str, str]:
    """Metadata in every model file."""
    return {
        "method": recipe.method["name"], "network": recipe.network["name"],
        "classes": "\n".join(classes), "side": str(side),
        "input": "RGB pixels in [0, 1], (N, 3, side, side); normalisation is in the network",
    }  # fmt: skip


def open_model(path: Path, trust: Iterable[str] = ()) -> Model:
    """See :func:`load`."""
    file, run = _place(path)
    about = metadata(file)
    if about.get("format", FORMAT) != FORMAT:  # files of `meada train` have no format
        raise MeadaError(f"{file} must be of format '{FORMAT}', got {about['format']!r:.80}: a newer meada may read it")
    recipe = _recipe(file, about, run, list(trust))
    if not about.get("classes"):
        raise MeadaError(f"{file} must name its classes, got none: it was not written by meada")
    classes = tuple(about["classes"].split("\n"))
    side = _number(file, about, "side") or _side(recipe)
    if not 1 <= side <= LARGEST or side != int(side):
        raise MeadaError(f"{file}: 'side' must be from 1 to {LARGEST}, got {side:g}")
    net = build_network(recipe, len(classes), file=False)
    load_weights_into(net, file)
    return Model(net, classes, int(side), recipe, about, file, run)


def method_folder(path: Path) -> RunFolder | None:
    """The run of a model: the folder itself, or the method's folder inside a ``robustify`` folder of version 0.1."""
    if not (path / PLAN).is_file():
        return RunFolder(path)
    runs = [p.parent for p in path.glob("*/recipe.toml") if p.parent.name != "erm"]
    return RunFolder(runs[0]) if len(runs) == 1 else None


def _place(path: Path) -> tuple[Path, RunFolder | None]:
    if path.parts[:1] == ("hf:",):  # Path turns hf:// into hf:/
        from meada.deploy.hub import download  # it imports this module

        return download("/".join(path.parts[1:])), None
    if path.is_file():
        return path, None
    if not path.is_dir():
        raise MeadaError(f"{path} must be a run's folder or a model.safetensors, but does not exist")
    if not (path / PLAN).is_file() and not RunFolder(path).recipe.is_file():
        raise MeadaError(f"{path} must be the folder of a run, got one without {PLAN} and without recipe.toml")
    file = path / "model.safetensors"
    if not file.is_file():
        raise MeadaError(f"{file} is not there: the run is not finished")
    return file, method_folder(path)


def _recipe(file: Path, about: Mapping[str, str], run: RunFolder | None, trust: list[str]) -> Recipe:
    """The recipe in the file's metadata or in the run's folder; code that it names must be trusted."""
    if "recipe_toml" in about:
        try:
            recipe = resolve(tomllib.loads(about["recipe_toml"]), trust)
        except MeadaError as error:
            raise MeadaError(f"{file}: {error}") from None
        except (ValueError, RecursionError) as error:
            raise MeadaError(f"{file}: 'recipe_toml' must be TOML, got {error}") from None
    elif run is not None:
        recipe = run.load_recipe(trust)
    else:
        raise MeadaError(f"{file} must name its network, got none: give the run's folder instead")
    refuse_disagreement(recipe.model_dump(), trust)
    refuse_untrusted({"network": recipe.network})
    return recipe


def _number(file: Path, about: Mapping[str, str], key: str) -> float | None:
    if key not in about:
        return None
    try:
        value = float(about[key])
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise MeadaError(f"{file}: '{key}' must be a number from 0 up, got {about[key]!r:.80}")
    return value


def _side(recipe: Recipe) -> int:
    side = recipe.data.get("side", SIDE)
    if isinstance(side, bool) or not isinstance(side, int):
        raise MeadaError(f"data.side must be a whole number, got {side!r:.80}")
    return side
