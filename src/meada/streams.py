"""Random streams by name: what is drawn depends on seed and place, never on what was drawn before.

So a run that is killed and resumed, or shared out over processes, draws the same numbers.
"""

from hashlib import sha256

import torch


def key(*names: int | str) -> int:
    """A 63-bit number for a sequence of names.

    >>> key(0, "order", 1) == key(0, "order", 1) != key(0, "order", 2)
    True
    """
    text = "\x1f".join(map(str, names))
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big") >> 1


def stream(*names: int | str, device: str | torch.device = "cpu") -> torch.Generator:
    return torch.Generator(device=device).manual_seed(key(*names))
