"""Import an optional library; if it is missing, say what to install."""

from importlib import import_module
from typing import Any

from meada.errors import MeadaError


def need(*modules: str, extra: str) -> Any:
    """The first of ``modules`` that can be imported.

    >>> need("no_such_library", extra="tensorboard")
    Traceback (most recent call last):
    meada.errors.MeadaError: no_such_library must be installed for this: pip install 'meada[tensorboard]'
    """
    for name in modules:
        try:
            return import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not name.startswith(error.name.partition(".")[0]):
                raise  # it is there, and lacks something itself
    raise MeadaError(f"{' or '.join(modules)} must be installed for this: pip install 'meada[{extra}]'")
