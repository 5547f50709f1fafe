"""Random numbers by name: they depend on seed and names, not on earlier random numbers.

A run that is killed and resumed, or shared out over processes, draws the same numbers. ``stream`` is
for what a step draws once; ``sample_streams`` gives each sample its own numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import blake2b, sha256
from math import prod
from typing import Any

import numpy as np
import torch
from jaxtyping import Float32, Float64, Int64, UInt16, UInt32, UInt64
from scipy.special import ndtri

from meada.errors import MeadaError


def key(*names: int | str) -> int:
    """A 63-bit number for a sequence of names.

    >>> key(0, "order", 1) == key(0, "order", 1) != key(0, "order", 2)
    True
    """
    text = "\x1f".join(map(str, names))
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big") >> 1


def stream(*names: int | str, device: str | torch.device = "cpu") -> torch.Generator:
    return torch.Generator(device=device).manual_seed(key(*names))


def _word(value: int) -> UInt64[np.ndarray, ""]:
    """A 0-dimensional array, which is faster than a number that numpy converts at every operation."""
    return np.array(value, dtype=np.uint64)


GOLDEN = _word(0x9E3779B97F4A7C15)  # 2^64 / golden ratio, odd: the counter's stride
FIRST, SECOND = _word(0xBF58476D1CE4E5B9), _word(0x94D049BB133111EB)  # SplitMix64's
UNUSED = _word(11)  # bits of a word beyond the 53 of a number in [0, 1)
ONE = _word(1)
SHIFTS = _word(30), _word(27), _word(31)  # likewise
STRIDES = np.stack([GOLDEN, SECOND])[:, None]  # from one position to the next
LANE = 1 << 40  # words between two lanes: draws with different meanings never share a word


@dataclass(frozen=True)
class Streams:
    """The random numbers of a batch of images, ``N`` streams side by side."""

    state: UInt64[np.ndarray, "2 N"]  # where each stream starts, and how its words are twisted

    def __getitem__(self, block: Any) -> "Streams":
        return Streams(self.state[:, block])

    def __len__(self) -> int:
        return self.state.shape[1]

    def named(self, name: str) -> "Streams":
        """Other streams of the same images; streams of different names are independent."""
        return self._forked(_digest(name))

    def numbered(self, numbers: Any) -> "Streams":
        """Other streams of the same images, keyed by a number per image."""
        return self._forked(_strides(numbers))

    def _forked(self, by: UInt64[np.ndarray, "2 #N"]) -> "Streams":
        moved = self.state + by
        key = np.empty_like(moved)
        key[0] = self.state[1]
        np.bitwise_xor(self.state[0], by[0], out=key[1])
        return Streams(_mix(moved, key))

    def words(self, count: int, lane: int = 0) -> UInt64[np.ndarray, "N count"]:
        """``count`` words of 64 bits for each image."""
        start, twist = self.state[:, :, None]
        return _mix(start + _counters(count, lane), twist)

    def sixteen(self, shape: Sequence[int], lane: int = 0) -> UInt16[np.ndarray, "N ..."]:
        """Integers 0..65535 of the given shape for each image; precise enough for 8-bit pixels."""
        return self._cut("<u2", shape, lane)

    def thirty_two(self, shape: Sequence[int], lane: int = 0) -> UInt32[np.ndarray, "N ..."]:
        """Integers 0..2^32-1, for precise probabilities of rare events."""
        return self._cut("<u4", shape, lane)

    def _cut(self, kind: str, shape: Sequence[int], lane: int) -> Any:
        """Split each word into ``kind``s, lowest bits first on any byte order."""
        count, pieces = prod(shape), 8 // np.dtype(kind).itemsize
        words = self.words(-(-count // pieces), lane).astype("<u8", copy=False)
        return words.view(kind)[:, :count].reshape(len(self), *shape)

    def normal(self, shape: Sequence[int], lane: int = 0) -> Float32[np.ndarray, "N ..."]:
        """Standard normal deviates: the 65,536 equally likely quantiles, up to 4.3 deviations."""
        return _quantiles().take(self.sixteen(shape, lane))

    def uniform(
        self, shape: Sequence[int], low: float = 0.0, high: float = 1.0, lane: int = 0
    ) -> Float64[np.ndarray, "N ..."]:
        """Uniform on [low, high) with 53 bits, for parameters of a whole image."""
        bits = self.words(prod(shape), lane)
        bits >>= UNUSED
        parts = bits * 2.0**-53
        parts *= high - low
        parts += low
        return parts.reshape(len(self), *shape)

    def integers(self, limit: Sequence[int] | Any, lane: int = 0) -> Any:
        """One integer in 0..limit-1 for each image; ``limit`` is a number or one for each image."""
        return np.floor(self.uniform((), lane=lane) * np.asarray(limit)).astype(np.int64)


def sample_streams(seed: int, name: str, severity: int, index: Any) -> Streams:
    """The streams of the images at positions ``index`` of their data set.

    >>> one = sample_streams(0, "fog", 3, [7])
    >>> many = sample_streams(0, "fog", 3, [5, 6, 7])
    >>> bool((one.words(4)[0] == many.words(4)[2]).all())
    True
    """
    both = _digest(f"{seed}/{name}/{severity}")
    return Streams(_mix(both + _strides(index), both[::-1]))


def positions_of(index: Any, n: int) -> Int64[np.ndarray, " N"]:
    """The position of each of ``n`` images in its data set: ``index``, by default 0, 1, 2, ...

    >>> positions_of(None, 3), positions_of(torch.tensor([7, 2]), 2)
    (array([0, 1, 2]), array([7, 2]))
    """
    if index is None:
        return np.arange(n)
    found = np.asarray(index.cpu() if isinstance(index, torch.Tensor) else index)
    if found.shape != (n,) or (n and found.dtype.kind not in "iu"):
        raise MeadaError(f"index must have one integer per image ({n}), got shape {found.shape} of {found.dtype}")
    if n and found.min() < 0:
        raise MeadaError(f"index must be 0 or more, got {found.min()}")
    return found.astype(np.int64)


def _strides(position: Any) -> UInt64[np.ndarray, "2 N"]:
    return (np.atleast_1d(np.asarray(position, dtype=np.uint64)) + ONE) * STRIDES


@lru_cache(64)
def _counters(count: int, lane: int) -> UInt64[np.ndarray, " count"]:
    made = (np.arange(count, dtype=np.uint64) + np.uint64(lane * LANE)) * GOLDEN
    made.flags.writeable = False
    return made


@lru_cache(4096)
def _digest(text: str) -> Any:
    """Hash of a text as two 64-bit words, in a column."""
    return np.frombuffer(blake2b(text.encode(), digest_size=16).digest(), dtype="<u8").astype(np.uint64)[:, None]


def _mix(z: Any, key: Any) -> UInt64[np.ndarray, "..."]:
    """SplitMix64's finaliser, mixed with ``key``, in place; overflow is intended."""
    first, second, third = SHIFTS
    shifted = z >> first
    z ^= shifted
    z *= FIRST
    z ^= key
    np.right_shift(z, second, out=shifted)
    z ^= shifted
    z *= SECOND
    np.right_shift(z, third, out=shifted)
    z ^= shifted
    return z


@cache
def _quantiles() -> Float32[np.ndarray, "65536"]:
    middles = ndtri((np.arange(65536) + 0.5) / 65536)
    return (middles / middles.std()).astype(np.float32)  # unit variance despite the cut tails
