"""Find a method, network, space or data set by name; run outside code only if the user named it.

Each kind has a table of built-in names. Any other name is ``FILE.py:function`` or ``module:function``: importing it
runs somebody's code. A recipe, a record or a model file may come from a stranger, so such a name is looked up only if
it is :class:`Trusted`: typed on the command line, or given as ``trust=`` in Python.
"""

import importlib
import importlib.util
import inspect
import traceback
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any

from meada.errors import MeadaError, nearest, one_line

FORMS = "FILE.py:function or module:function"
Makers = Mapping[str, Callable[[str], Callable[..., Any]]]  # by prefix, as ``timm`` in ``timm:resnet18``
NO_MAKERS: Makers = {}
EXECUTED: set[str] = set()  # people's own files that this process ran


class Trusted(str):
    """A name given by the user, as opposed to a string read from a file."""


def lookup(
    kind: str, name: str, known: Mapping[str, Callable[..., Any]], *, trust: Iterable[str] = (),
    makers: Makers = NO_MAKERS,
) -> Callable[..., Any]:  # fmt: skip
    """The function that ``name`` stands for.

    >>> lookup("number", "two", {"two": lambda: 2})()
    2
    >>> lookup("path", "os:getcwd", {})
    Traceback (most recent call last):
    meada.errors.MeadaError: this run needs code from os:getcwd; pass --path os:getcwd to allow it
    """
    if name in known:
        return known[name]
    place, _, function = name.rpartition(":")
    if not place or not function:
        forms = " or ".join([*(f"{maker}:NAME" for maker in makers), FORMS])
        raise MeadaError(f"unknown {kind} '{name}': {nearest(name, known)} (or {forms})")
    allowed = trusted(name, trust)
    if is_code(name, known, makers) and not isinstance(allowed, Trusted):
        raise MeadaError(needs_code(kind, name))
    prefix, _, rest = name.partition(":")
    return makers[prefix](rest) if prefix in makers else _function(kind, allowed)


def call(kind: str, name: str, function: Callable[..., Any], /, **arguments: Any) -> Any:
    """Call the function that :func:`lookup` found; a fault of the user's own code is one sentence with its name."""
    try:
        return function(**arguments)
    except Exception as error:
        if isinstance(error, MeadaError) or not isinstance(name, Trusted):
            raise
        raise MeadaError(f"{kind} '{name}' fails with {first_line(error)}") from error


def trusted(name: str, trust: Iterable[str]) -> str:
    """The user's form of ``name``: the same, or the same file and function in another folder.

    >>> trusted("/theirs/net.py:make", ["mine/net.py:make"])
    'mine/net.py:make'
    >>> isinstance(trusted("os:system", ["net.py:make"]), Trusted)
    False
    """
    if isinstance(name, Trusted):
        return name
    same = (given for given in trust if given == name or (_file(name) and _file(given) == _file(name)))
    return next((Trusted(given) for given in same), name)


def is_code(name: object, known: Iterable[str] = (), makers: Iterable[str] = ()) -> bool:
    """Whether a name stands for code outside the package."""
    if not isinstance(name, str) or ":" not in name or name in known:
        return False
    prefix, _, rest = name.partition(":")
    return prefix not in makers or bool(set(rest) & set(":/\\"))  # a hub's or a folder's name is code


def needs_code(kind: str, name: str) -> str:
    subject, first = "model" if kind == "network" else "run", kind.split()[0]
    option = "trust" if first == "augmentation" else first  # the others have an option of their own
    return f"this {subject} needs code from {name}; pass --{option} {name} to allow it"


def accepting(function: Callable[..., Any], argument: str) -> Callable[..., Any]:
    """``function``, called without ``argument`` if it does not take it."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return function
    if argument in parameters or inspect.Parameter.VAR_KEYWORD in {p.kind for p in parameters.values()}:
        return function

    @wraps(function)
    def without(**arguments: Any) -> Any:
        return function(**{name: value for name, value in arguments.items() if name != argument})

    return without


def first_line(error: BaseException) -> str:
    """Class and message of an exception in one line."""
    return f"{type(error).__name__}: {one_line(error)}"


def own_line(error: BaseException) -> str:
    """Where in somebody's own file an error arose, as ``net.py, line 3``; nothing if it arose elsewhere."""
    lines = [at for at in traceback.extract_tb(error.__traceback__) if at.filename in EXECUTED]
    return f"{Path(lines[-1].filename).name}, line {lines[-1].lineno}" if lines else ""


def _file(name: str) -> str:
    """``net.py:make`` of ``folder/net.py:make``; empty if no file is named."""
    place, _, function = name.rpartition(":")
    return f"{Path(place).name}:{function}" if place.endswith(".py") else ""


def _function(kind: str, name: str) -> Callable[..., Any]:
    place, _, function = name.rpartition(":")
    is_file = place.endswith(".py")
    if is_file and not Path(place).is_file():
        raise MeadaError(f"{kind} '{name}' must be in an existing file, got {place}")
    try:
        module = _executed(Path(place)) if is_file else importlib.import_module(place)
    except Exception as error:  # whatever somebody's code does
        what = place if is_file else f"importing {place}"
        raise MeadaError(f"{kind} '{name}': {what} fails with {first_line(error)}") from error
    found = getattr(module, function, None)
    if not callable(found):
        raise MeadaError(f"{kind} '{name}': {place} has no function '{function}'")
    return found


def _executed(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    EXECUTED.add(str(spec.origin))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
