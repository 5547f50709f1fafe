"""Every method by the name that a recipe calls it by."""

from collections.abc import Callable

from meada.methods.advtrain import advtrain
from meada.methods.augmix import augmax, augmix
from meada.methods.autoaugment import autoaugment
from meada.methods.dsn import dsn
from meada.methods.epi_fcr import epi_fcr
from meada.methods.erm import agg, erm
from meada.methods.fusion import fusion
from meada.methods.hex import hex_
from meada.methods.l_cnn import l_cnn
from meada.methods.meada import ada, meada
from meada.methods.meada_bnn import meada_bnn
from meada.methods.metareg import metareg
from meada.methods.method import Method
from meada.methods.mixing import cutmix, cutout, mixup
from meada.methods.mldg import mldg
from meada.methods.noise import noise
from meada.methods.par import par
from meada.methods.random_views import prime, randconv, trivialaugment
from meada.methods.tilted import tilted

__all__ = ["METHODS", "Method"]

METHODS: dict[str, Callable[..., Method]] = {
    "erm": erm,
    "ada": ada,
    "meada": meada,
    "meada-bnn": meada_bnn,
    "noise": noise,
    "agg": agg,
    "par": par,
    "hex": hex_,
    "dsn": dsn,
    "l-cnn": l_cnn,
    "mldg": mldg,
    "fusion": fusion,
    "metareg": metareg,
    "epi-fcr": epi_fcr,
    "cutout": cutout,
    "cutmix": cutmix,
    "autoaugment": autoaugment,
    "mixup": mixup,
    "advtrain": advtrain,
    "augmix": augmix,
    "augmax": augmax,
    "trivialaugment": trivialaugment,
    "randconv": randconv,
    "prime": prime,
    "tilted": tilted,
}
