"""Checkpoints to resume from, and weights as safetensors with a checksum inside.

Neither file holds code. A damaged or foreign file, or one with weights that are not finite, is refused.
"""

import json
import warnings
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from meada.errors import MeadaError, one_line
from meada.files import read_bytes, write_bytes
from meada.minimise import Training

FORMAT = "meada-checkpoint/1"
COUNTERS = ("step", "round", "epoch", "position")


def save_checkpoint(path: Path, training: Training, extras: dict[str, Any]) -> None:
    """Write a checkpoint; ``extras`` are plain numbers, strings, lists and dicts."""
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
    """Restore ``training`` from the checkpoint; return its extras.

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
        raise MeadaError(f"{path} does not fit this run's recipe ({one_line(error)}); train again") from None


def save_weights(path: Path, net: nn.Module, about: dict[str, str] | None = None) -> None:
    """Write weights as safetensors, with ``about`` as the file's metadata."""
    # Cloned: tensors that share memory are refused by the format.
    weights = {k: v.detach().cpu().contiguous().clone() for k, v in net.state_dict().items()}
    write_bytes(path, with_checksum(save(weights, metadata=about or {})), checked=False)


def load_weights_into(net: nn.Module, path: Path) -> dict[str, str]:
    """Load weights that are complete, finite and fit; returns the file's metadata."""
    weights, about = read_weights(path)
    try:
        net.load_state_dict(weights)
    except RuntimeError as error:
        raise MeadaError(f"{path} does not fit the network: {one_line(error, 300)}") from None
    return about


def read_state(path: Path, held: bytes | None = None) -> dict[str, Any]:
    """Read a file of :func:`save_checkpoint`; ``held`` is its content if another process has read it.

    No pickle from outside: only tensors and plain containers are admitted.
    """
    held = read_bytes(path) if held is None else held
    try:
        state = torch.load(BytesIO(held), weights_only=True, map_location="cpu")
    except Exception as error:  # torch raises many kinds for a damaged file
        raise MeadaError(f"{path} is damaged or not a checkpoint of meada ({one_line(error)})") from None
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        found = state.get("format") if isinstance(state, dict) else type(state).__name__
        raise MeadaError(f"{path} must be a checkpoint of format '{FORMAT}', got {found!r}")
    return state


CHECKSUM_KEY = "sha256"  # the metadata's key
HEADER = 64 << 20  # bytes that a header may have


def with_checksum(content: bytes) -> bytes:
    """The same safetensors with sorted metadata that include its SHA-256.

    safetensors writes metadata in any order. Sorted, the same weights are the same file, and a checksum can compare
    two runs.
    """
    header, data = _parts(content)
    about = {k: v for k, v in header.pop("__metadata__", {}).items() if k != CHECKSUM_KEY}
    text = _text(header, {**about, CHECKSUM_KEY: _digest(header, about, data)})
    text += b" " * (-len(text) % 8)  # the data begin at a multiple of eight bytes
    return len(text).to_bytes(8, "little") + text + data


def read_weights(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Names and tensors, and the metadata."""
    if not path.is_file():
        raise MeadaError(f"{path} must be a file of weights, got {'a folder' if path.is_dir() else 'none'}")
    try:
        content = read_bytes(path)
        about = metadata(path, content)
        weights = load(content)
    except (SafetensorError, OSError) as error:
        raise MeadaError(f"{path} cannot be read as safetensors: {error}") from None
    if bad := [name for name, value in weights.items() if value.is_floating_point() and not value.isfinite().all()]:
        raise MeadaError(f"{path}: weights must be finite, got NaN or infinity in {', '.join(bad[:3])}")
    return weights, about


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Tensors of a file without a checksum in it, such as a gallery."""
    try:
        return load(read_bytes(path))
    except SafetensorError as error:
        raise MeadaError(f"{path} is damaged: it must be safetensors, got {error}") from None


def metadata(path: Path, content: bytes | None = None) -> dict[str, str]:
    """The file's metadata, after its checksum is verified."""
    content = read_bytes(path) if content is None else content
    try:
        header, data = _parts(content)
        about = header.pop("__metadata__", {})
        written = about.pop(CHECKSUM_KEY, None)
        found = _digest(header, about, data)
        good = all(isinstance(value, str) for value in about.values())
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise MeadaError(f"{path} cannot be read as safetensors: {error}") from None
    if written is None:
        warnings.warn(f"{path} has no checksum: damage to it cannot be noticed", stacklevel=2)
    elif written != found:
        raise MeadaError(f"{path} is damaged: its checksum must be {str(written)[:12]}..., got {found[:12]}...")
    if not good:
        raise MeadaError(f"{path} cannot be read as safetensors: metadata must be text")
    return dict(about)


def _parts(content: bytes) -> tuple[dict[str, Any], bytes]:
    start = 8 + int.from_bytes(content[:8], "little")
    if start > min(HEADER, len(content)):
        raise ValueError(f"a header of {start - 8} bytes in a file of {len(content)}")
    header = json.loads(content[8:start])
    if not isinstance(header, dict):
        raise ValueError("the header must be a table")
    return header, content[start:]


def _text(header: dict[str, Any], about: dict[str, str]) -> bytes:
    whole = {"__metadata__": dict(sorted(about.items())), **header}
    return json.dumps(whole, separators=(",", ":"), ensure_ascii=False).encode()


def _digest(header: dict[str, Any], about: dict[str, str], data: bytes) -> str:
    seal = sha256(_text(header, about))
    seal.update(data)
    return seal.hexdigest()
