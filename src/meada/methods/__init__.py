"""Every method by its name in recipes."""

from collections.abc import Callable

from meada.methods.advtrain import advtrain
from meada.methods.augmax import augmax
from meada.methods.augmix import augmix
from meada.methods.autoaugment import autoaugment
from meada.methods.cutmix import cutmix
from meada.methods.cutout import cutout
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
from meada.methods.mixup import mixup
from meada.methods.mldg import mldg
from meada.methods.noise import noise
from meada.methods.par import par
from meada.methods.prime import prime
from meada.methods.randconv import randconv
from meada.methods.tilted import tilted
from meada.methods.trivialaugment import trivialaugment

__all__ = ["METHODS", "Method"]

METHODS: dict[str, Callable[..., Method]] = {
    "erm": erm, "ada": ada, "meada": meada, "meada-bnn": meada_bnn, "noise": noise,
    # for several sources, and other baselines of Tables 1 and 2
    "agg": agg, "par": par, "hex": hex_, "dsn": dsn, "l-cnn": l_cnn, "mldg": mldg, "fusion": fusion,
    "metareg": metareg, "epi-fcr": epi_fcr,
    # augmentations of Table 3
    "cutout": cutout, "cutmix": cutmix, "autoaugment": autoaugment, "mixup": mixup, "advtrain": advtrain,
    "augmix": augmix,
    # past the paper
    "augmax": augmax, "trivialaugment": trivialaugment, "randconv": randconv, "prime": prime, "tilted": tilted,
}  # fmt: skip
