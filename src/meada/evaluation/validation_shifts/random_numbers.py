"""Random numbers of a batch as tensors: one row per image, from that image's own stream."""

from torch import Tensor, from_numpy

from meada.streams import Streams
from meada.types import Images


def uniform(rng: Streams, x: Images, low: float, high: float, *shape: int, lane: int = 0) -> Tensor:
    """Uniform on [low, high) of shape (B, *shape); (B, 1, 1, 1) if no shape is given."""
    return from_numpy(rng.uniform(shape or (1, 1, 1), low, high, lane=lane)).to(x)


def normal(rng: Streams, x: Images, *shape: int, lane: int = 0) -> Tensor:
    """Standard normal of shape (B, *shape)."""
    return from_numpy(rng.normal(shape, lane=lane)).to(x)


def outside_middle(rng: Streams, x: Images, least: float, most: float, *shape: int, lane: int = 0) -> Tensor:
    """Of either sign, its size uniform on [least, most): a shift that is never next to nothing."""
    u = uniform(rng, x, -1.0, 1.0, *shape, lane=lane)
    return u.sign() * least + u * (most - least)
