"""Every method by the name that a recipe calls it by."""

from collections.abc import Callable

from meada.methods.advtrain import advtrain
from meada.methods.agg import agg
from meada.methods.augmix import augmix
from meada.methods.autoaugment import autoaugment
from meada.methods.cutmix import cutmix
from meada.methods.cutout import cutout
from meada.methods.erm import erm
from meada.methods.hex import hex_
from meada.methods.meada import ada, meada
from meada.methods.meada_bnn import meada_bnn
from meada.methods.method import Method
from meada.methods.mixup import mixup
from meada.methods.par import par

__all__ = ["METHODS", "Method"]

METHODS: dict[str, Callable[..., Method]] = {
    "erm": erm,
    "ada": ada,
    "meada": meada,
    "meada-bnn": meada_bnn,
    "agg": agg,
    "par": par,
    "hex": hex_,
    "cutout": cutout,
    "cutmix": cutmix,
    "autoaugment": autoaugment,
    "mixup": mixup,
    "advtrain": advtrain,
    "augmix": augmix,
}
