"""Files written whole or not at all."""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """A full disk is told with the name of the file, which ``write`` leaves out."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def write_bytes(path: Path, content: bytes) -> None:
    """Put ``content`` at ``path`` in one stroke: whoever looks sees the old file or the new one."""
    with naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with naming(path), os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_text(path: Path, content: str) -> None:
    write_bytes(path, content.encode())


def write_json(path: Path, content: Any) -> None:
    """JSON with two-space indents; a NaN is an error, since other readers refuse it."""
    write_text(path, json.dumps(content, indent=2, allow_nan=False) + "\n")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def data_root(root: str | Path | None = None) -> Path:
    """``root`` if it is given, else ``$MEADA_DATA``, else ``~/.cache/meada``."""
    return Path(root or os.environ.get("MEADA_DATA") or Path.home() / ".cache" / "meada")
