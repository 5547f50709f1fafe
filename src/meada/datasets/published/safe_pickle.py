"""Pickles as CIFAR was published in: arrays, strings, numbers and containers, and nothing else.

A pickle is a program. This reader runs it without any function that it names: the four names by
which numpy writes an array stand for the classes below, and every other name is refused.
"""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meada.errors import MeadaError

KINDS = frozenset({"u1", "i1", "u2", "i2", "i4", "i8", "u4", "u8", "f4", "f8"})  # numbers alone


def read(path: Path) -> dict[str, Any]:
    """The dictionary that the file holds; its keys as strings, arrays as arrays."""
    try:
        with path.open("rb") as file:
            held = _Reader(file, encoding="latin1").load()
    except MeadaError:
        raise
    except FileNotFoundError:
        raise MeadaError(f"{path} is missing") from None
    except Exception as fault:  # whatever a broken pickle brings about, it is the file's fault
        raise MeadaError(f"{path} is not a batch of CIFAR as published: {fault}") from None
    if not isinstance(held, dict):
        raise MeadaError(f"{path} holds a {type(held).__name__}: a dictionary is published")
    return {_text(key): value.array() if isinstance(value, _Array) else value
            for key, value in held.items()}  # fmt: skip


class _Kind:
    """Stands for ``numpy.dtype``: the type of an array's numbers."""

    def __init__(self, name: Any = "", *_: Any) -> None:
        self.name, self.order = _text(name), "="
        if self.name not in KINDS:
            raise pickle.UnpicklingError(f"an array of '{self.name}', which is no type of number")

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.order = {"|": "=", "<": "<", ">": ">", "=": "="}[_text(state[1])]

    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.name).newbyteorder(self.order)  # type: ignore[arg-type]


class _Array:
    """Stands for ``numpy.ndarray``: its shape, its type and its bytes, in that order of coming."""

    def __init__(self, *_: Any) -> None:
        self.state: tuple[Any, ...] = ()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.state = state

    def array(self) -> NDArray[Any]:
        try:
            _, shape, kind, by_column, content = self.state
            raw = content.encode("latin1") if isinstance(content, str) else content
            flat = np.frombuffer(raw, kind.dtype())
            return flat.reshape(shape, order="F" if by_column else "C")
        except (TypeError, ValueError, AttributeError) as error:
            raise MeadaError(f"an array in a pickle is damaged: {error}") from None


def _encode(text: str, _: str = "latin1") -> bytes:
    """Stands for ``_codecs.encode``, by which bytes are written in old protocols."""
    return text.encode("latin1")


KNOWN = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,  # the same since numpy 2
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Kind,
    ("_codecs", "encode"): _encode,
}


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in KNOWN:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no batch of CIFAR needs: refused")
        return KNOWN[module, name]


def _text(value: Any) -> str:
    return value.decode("latin1") if isinstance(value, bytes) else str(value)
