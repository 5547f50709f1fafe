"""Which kinds of image change to train on: where colour tells the classes apart, views leave it as it is."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from meada.datasets import Samples
from meada.evaluation import predict
from meada.evaluation.selection import fixed_subset
from meada.pool import as_float
from meada.robustify.labels import accuracy, chance
from meada.spaces import MEMBERS, Space, Theta, one_of, skip_mix
from meada.types import Images

HELD = 300  # pictures that the choice is made on
LIMIT = 0.25  # share of the accuracy above chance that the probe may lose without colour
KEEPING = ("random_convolution", "colour_curve")  # members that can change brightness alone
BATCH = 64


def choose_families(probe: nn.Module, held: Samples) -> dict[str, Any]:
    """What the probe loses on grey held-out pictures says how much of the label it reads from colour.

    Decision 0078 compares this with other signals.
    """
    some = fixed_subset("families", held, HELD)
    read = lambda x: accuracy(predict(probe, x, batch_size=BATCH), some.labels)
    colour, without = read(some.images), read(grey(as_float(some.images)))
    lost = (colour - without) / max(colour - chance(some.labels), 1.0)
    return {"colour": lost <= LIMIT, "lost": lost, "probe": colour, "probe_on_grey": without, "n": len(some)}


def space_of(colour: bool, members: Sequence[str] = tuple(MEMBERS)) -> Space:
    """The wide space; without ``colour``, members change brightness alone or are left out."""
    spaces = [MEMBERS[name]() for name in members]
    if not colour:
        spaces = [s if "colour" not in s.families else luminance(s) for s in spaces
                  if "colour" not in s.families or s.name in KEEPING]  # fmt: skip
    return skip_mix(one_of(*spaces, name="wide" if colour else "wide without colour"))


def luminance(space: Space) -> Space:
    """Change brightness as ``space`` would change a grey picture, and leave the differences between channels."""

    def transform(x: Images, theta: Theta) -> Images:
        base = grey(x)
        return x + grey(space.apply(base, theta)) - base

    return replace(space, transform=transform, families=space.families - {"colour"}, name=f"luminance of {space.name}")


def grey(x: Tensor) -> Images:
    """The mean of the channels, in each of them."""
    return x.mean(1, keepdim=True).expand_as(x).contiguous()
