"""Weights as safetensors with a checksum inside: a damaged, foreign or non-finite file is refused."""

import json
import warnings
from hashlib import sha256
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from meada.errors import MeadaError
from meada.files import read_bytes

SEAL = "sha256"  # the metadata's key
HEADER = 64 << 20  # bytes that a header may have


def sealed(content: bytes) -> bytes:
    """The same safetensors with its metadata sorted and its SHA-256 among them.

    safetensors writes metadata in any order. Sorted, the same weights are the same file, and a checksum can compare
    two runs.
    """
    header, data = _parts(content)
    about = {k: v for k, v in header.pop("__metadata__", {}).items() if k != SEAL}
    text = _text(header, {**about, SEAL: _digest(header, about, data)})
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


def metadata(path: Path, content: bytes | None = None) -> dict[str, str]:
    """What a file says of itself, once its checksum is found to match."""
    content = read_bytes(path) if content is None else content
    try:
        header, data = _parts(content)
        about = header.pop("__metadata__", {})
        told = about.pop(SEAL, None)
        found = _digest(header, about, data)
        good = all(isinstance(value, str) for value in about.values())
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise MeadaError(f"{path} cannot be read as safetensors: {error}") from None
    if told is None:
        warnings.warn(f"{path} has no checksum: damage to it cannot be noticed", stacklevel=2)
    elif told != found:
        raise MeadaError(f"{path} is damaged: its checksum must be {str(told)[:12]}..., got {found[:12]}...")
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
