"""Build the network of a recipe: with fresh weights, or with those of a finished run."""

from collections.abc import Iterable
from hashlib import sha256
from typing import Any

import torch
from torch import nn

from meada.errors import MeadaError
from meada.evaluation.calibration import check_calibration
from meada.files import data_root, read_bytes
from meada.images.inputs import check_network
from meada.lookup import is_code
from meada.networks import NETWORKS
from meada.networks.pretrained import load_weights
from meada.runs.checkpoint import load_weights_into
from meada.runs.functions import MAKERS, make
from meada.runs.recipe import Recipe, method_of
from meada.runs.run_folder import RunFolder
from meada.streams import key


def build_network(recipe: Recipe, classes: int, *, file: bool = True) -> nn.Module:
    """The recipe's network with initial weights from its seed and its file of weights.

    Its convolutions are laid out channels-last, which the CPU's kernels are fastest with; a network from a person's
    own file keeps its layout, since its forward pass may depend on it.
    """
    return fresh_network(recipe, classes, file=file)[0]


def fresh_network(recipe: Recipe, classes: int, *, file: bool) -> tuple[nn.Module, dict[str, Any]]:
    """The network and the report of its file of weights; empty if the recipe names none."""
    table = dict(recipe.network)
    if not file and "pretrained" in table:
        table["pretrained"] = False  # a run's own weights follow: nothing is downloaded
    name, partial = table.pop("weights", ""), bool(table.pop("partial", False))
    with torch.random.fork_rng():
        torch.manual_seed(key(recipe.seed, "initial weights"))
        net: nn.Module = make("network", table, num_classes=classes)
        check_network(net)
        account: dict[str, Any] = {}
        if name and file:
            path = data_root() / "weights" / name
            loaded = load_weights(net, path, partial=partial)
            account = {
                "file": path.name,
                "sha256": sha256(read_bytes(path)).hexdigest(),
                "loaded": list(loaded.loaded),
                "left_at_random": list(loaded.left),
                "unused": list(loaded.unused),
            }
        net = method_of(recipe).adapt(net)
        if recipe.calibrate_on:
            check_calibration(net, recipe.calibrate_on)
        if not is_code(recipe.network["name"], NETWORKS, MAKERS["network"]):
            net = net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return net, account


def load_model(folder: RunFolder, classes: int, rule: str = "last", trust: Iterable[str] = ()) -> nn.Module:
    """The network that a finished run selected by ``rule``."""
    path = folder.selected(rule)
    if not path.exists():
        raise MeadaError(f"{path} does not exist: the run is not finished, or has no '{rule}' model")
    net = build_network(folder.load_recipe(trust), classes, file=False)
    load_weights_into(net, path)
    return net
