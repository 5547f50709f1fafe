"""Resume state: everything that changes in a run, in one file that holds no code."""

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import nn

from meada.errors import MeadaError
from meada.files import write_bytes
from meada.minimise import Training

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


def load_checkpoint(path: Path, training: Training, held: bytes | None = None) -> dict[str, Any]:
    """Put ``training`` where the checkpoint left off; gives back its extras.

    ``held`` is what the file has, where another process has read it.
    """
    state = _read(path, held)
    try:
        training.net.load_state_dict(state["network"])
        training.optimiser.load_state_dict(state["optimiser"])
        training.parts.modules.load_state_dict(state["modules"])
        for name, optimiser in training.parts.optimisers.items():
            optimiser.load_state_dict(state["optimisers"][name])
        for name in COUNTERS:
            setattr(training, name, int(state["counters"][name]))
        return dict(state["extras"])
    except (KeyError, ValueError, RuntimeError, TypeError) as error:
        what = str(error).splitlines()[0]
        raise MeadaError(f"{path} does not fit this run's recipe ({what}); train anew") from None


def save_weights(path: Path, net: nn.Module, about: dict[str, str] | None = None) -> None:
    """Weights as safetensors; ``about`` travels in the file's metadata."""
    # Cloned: tensors that share memory are refused by the format.
    weights = {k: v.detach().cpu().contiguous().clone() for k, v in net.state_dict().items()}
    write_bytes(path, in_order(save(weights, metadata=about or {})))


def in_order(content: bytes) -> bytes:
    """The same safetensors with its metadata sorted: safetensors writes them in any order.

    So the same weights are the same file, and a checksum can compare two runs.
    """
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    if "__metadata__" in header:
        header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # the data begin at a multiple of eight bytes
    return len(text).to_bytes(8, "little") + text + content[start:]


def load_weights_into(net: nn.Module, path: Path) -> None:
    try:
        net.load_state_dict(load_file(path))
    except (SafetensorError, OSError) as error:
        raise MeadaError(f"{path} cannot be read as safetensors: {error}") from None
    except RuntimeError as error:
        what = " ".join(str(error).split())[:300]
        raise MeadaError(f"{path} does not fit the network: {what}") from None


def _read(path: Path, held: bytes | None) -> dict[str, Any]:
    """No pickle from outside: only tensors and plain containers are admitted."""
    try:
        source = path if held is None else BytesIO(held)
        state = torch.load(source, weights_only=True, map_location="cpu")
    except Exception as error:  # torch raises many kinds for a damaged file
        what = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise MeadaError(f"{path} is damaged or no checkpoint of meada ({what[:120]})") from None
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        found = state.get("format") if isinstance(state, dict) else type(state).__name__
        raise MeadaError(f"{path} is no checkpoint of meada: format '{FORMAT}', not {found!r}")
    return state
