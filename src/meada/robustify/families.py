"""Choose the families of image changes to train on: if colour separates the classes, views do not change it."""

from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from meada.datasets import Samples
from meada.evaluation import predict
from meada.evaluation.selection import fixed_subset
from meada.pool import as_float
from meada.robustify.labels import accuracy, chance
from meada.spaces import Space, Theta, one_of, skip_mix
from meada.spaces.wide import MEMBERS
from meada.types import Images

HELD = 300  # maximum of held-out pictures used for the choice
LIMIT = 0.25  # largest share of the accuracy above chance that the probe may lose on grey pictures
KEEPING = ("random_convolution", "colour_curve")  # members that can change brightness only


def choose_families(probe: nn.Module, held: Samples) -> dict[str, Any]:
    """Measure how much the probe relies on colour: its loss of accuracy on grey held-out pictures.

    Decision 0078 compares this with other signals.
    """
    some = fixed_subset("families", held, HELD)
    read = lambda x: accuracy(predict(probe, x, batch_size=64), some.labels)
    colour, without = read(some.images), read(grey(as_float(some.images)))
    lost = (colour - without) / max(colour - chance(some.labels), 1.0)
    return {"colour": lost <= LIMIT, "lost": lost, "probe": colour, "probe_on_grey": without, "n": len(some)}


def space_of(colour: bool) -> Space:
    """The wide space; without ``colour``, its members change only brightness or are left out."""
    spaces = [member() for member in MEMBERS.values()]
    if not colour:
        spaces = [luminance(s) if s.name in KEEPING else s for s in spaces
                  if "colour" not in s.families or s.name in KEEPING]  # fmt: skip
    return skip_mix(one_of(*spaces, name="wide" if colour else "wide without colour"))


def luminance(space: Space) -> Space:
    """Change brightness as ``space`` would on a grey picture, and keep the differences between channels."""

    def transform(x: Images, theta: Theta) -> Images:
        base = grey(x)
        return x + grey(space.apply(base, theta)) - base

    return replace(space, transform=transform, families=space.families - {"colour"}, name=f"luminance of {space.name}")


def grey(x: Tensor) -> Images:
    """Replace every channel by the mean of the channels."""
    return x.mean(1, keepdim=True).expand_as(x).contiguous()
