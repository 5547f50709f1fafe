"""Train several candidates on your own pictures and deliver the best one, with the evidence."""

import sys
from inspect import signature
from types import ModuleType

from meada.robustify.outcome import Outcome
from meada.robustify.pipeline import robustify

__all__ = ["Outcome", "robustify"]


class _CallableModule(ModuleType):
    """``meada.robustify(...)`` works although this package has the function's name."""

    __call__ = staticmethod(robustify)


sys.modules[__name__].__class__ = _CallableModule
__signature__ = signature(robustify)  # for help() and editors
