"""Resume state: everything that changes in a run, in one file that holds no code."""

from io import BytesIO
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import nn

from meada.errors import MeadaError
from meada.files import read_bytes, write_bytes
from meada.minimise import Training
from meada.runs.weights import read_weights, sealed

FORMAT = "meada-checkpoint/1"
COUNTERS = ("step", "round", "epoch", "position")


def save_checkpoint(path: Path, training: Training, extras: dict[str, Any]) -> None:
    """``extras`` are plain numbers, strings, lists and dicts."""
    state = {
        "format": FORMAT,
        "network": training.net.state_dict(),
        "optimiser": training.optimiser.state_dict(),
        "modules": training.parts.modules.state_dict(),
        "optimisers": {k: o.state_dict() for k, o in training.parts.optimisers.items()},
        "counters": {name: getattr(training, name) for name in COUNTERS},
        "extras": extras,
    }
    buffer = BytesIO()
    torch.save(state, buffer)
    write_bytes(path, buffer.getvalue())


def load_checkpoint(path: Path, training: Training, state: dict[str, Any] | None = None) -> dict[str, Any]:
    """Put ``training`` where the checkpoint left off; gives back its extras.

    ``state`` is what the file holds, where it has been read before.
    """
    state = read_state(path) if state is None else state
    try:
        training.net.load_state_dict(state["network"])
        training.optimiser.load_state_dict(state["optimiser"])
        training.parts.modules.load_state_dict(state["modules"])
        for name, optimiser in training.parts.optimisers.items():
            optimiser.load_state_dict(state["optimisers"][name])
        for name in COUNTERS:
            setattr(training, name, int(state["counters"][name]))
        return dict(state["extras"])
    except (KeyError, ValueError, RuntimeError, TypeError, AttributeError, IndexError) as error:
        what = str(error).splitlines()[0]
        raise MeadaError(f"{path} does not fit this run's recipe ({what}); train anew") from None


def save_weights(path: Path, net: nn.Module, about: dict[str, str] | None = None) -> None:
    """Weights as safetensors; ``about`` travels in the file's metadata."""
    # Cloned: tensors that share memory are refused by the format.
    weights = {k: v.detach().cpu().contiguous().clone() for k, v in net.state_dict().items()}
    write_bytes(path, sealed(save(weights, metadata=about or {})), checked=False)


def load_weights_into(net: nn.Module, path: Path) -> dict[str, str]:
    """Weights that are whole, finite and fit; gives back the file's metadata."""
    weights, about = read_weights(path)
    try:
        net.load_state_dict(weights)
    except RuntimeError as error:
        what = " ".join(str(error).split())[:300]
        raise MeadaError(f"{path} does not fit the network: {what}") from None
    return about


def read_state(path: Path, held: bytes | None = None) -> dict[str, Any]:
    """What :func:`save_checkpoint` wrote; ``held`` is what the file has, where another process has read it.

    No pickle from outside: only tensors and plain containers are admitted.
    """
    held = read_bytes(path) if held is None else held
    try:
        state = torch.load(BytesIO(held), weights_only=True, map_location="cpu")
    except Exception as error:  # torch raises many kinds for a damaged file
        what = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise MeadaError(f"{path} is damaged or no checkpoint of meada ({what[:120]})") from None
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        found = state.get("format") if isinstance(state, dict) else type(state).__name__
        raise MeadaError(f"{path} is no checkpoint of meada: format '{FORMAT}', not {found!r}")
    return state
