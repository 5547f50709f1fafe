"""Write files completely or not at all, and check them when they are read again.

A folder with a ``checksums.json`` (a run's folder has one) keeps the SHA-256 of every file that is written to it, or
to a folder directly in it, through this module. :func:`read_bytes` refuses a file that does not match.
"""

import fcntl
import json
import math
import os
import re
import stat
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

from meada.errors import MeadaError

SUMS = "checksums.json"
TRIES = 3  # to write a file whose draft is removed by others
# How ``mkstemp`` names what ``write_bytes`` is writing; other people's hidden files are not taken for it.
WRITTEN = "json jsonl toml pt checkpoint driver safetensors npy seconds processes png jpg html md csv txt onnx"
DRAFT = re.compile(rf"\..*\.({WRITTEN.replace(' ', '|')})\.[a-z0-9_]{{8}}")
MAX_FILE_BYTES = 8 << 30  # bytes of a file that is read whole: a checkpoint is the largest
MAX_TEXT_BYTES = 256 << 20  # bytes of a text file: a log, a record, checksums
KINDS = {
    stat.S_IFIFO: "a FIFO", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a folder",
}  # fmt: skip


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add the file's name to OS errors of ``write``, such as a full disk."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def regular(path: Path, most: int | None) -> Path:
    """The path of a regular file of at most ``most`` bytes; pipes and devices are refused."""
    try:
        about = path.stat()
    except FileNotFoundError:
        raise MeadaError(f"{path} is missing") from None
    if not stat.S_ISREG(about.st_mode):
        raise MeadaError(f"{path} must be a file, got {KINDS.get(stat.S_IFMT(about.st_mode), 'something else')}")
    if most is not None and about.st_size > most:
        raise MeadaError(f"{path} must have at most {most:,} bytes, got {about.st_size:,}")
    return path


def write_bytes(path: Path, content: bytes, *, checked: bool = True) -> None:
    """Write ``content`` to ``path`` atomically: a reader sees the old file or the new one.

    ``checked=False`` keeps no checksum: for files that carry their own, or from which nothing is read back.
    """
    home = sums_folder(path) if checked and path.name != SUMS else None
    if home:  # the new checksum next to the old one, then the file, then the new one alone:
        _note(home, path, content, alone=False)  # a process that is killed in between leaves a file that matches
    _replace(path, content)
    if home:
        _note(home, path, content, alone=True)


def write_text(path: Path, content: str, *, checked: bool = True) -> None:
    write_bytes(path, content.encode(errors="backslashreplace"), checked=checked)  # names of files may be any bytes


def write_json(path: Path, content: Any, *, checked: bool = True) -> None:
    """JSON with two-space indents; a NaN is an error, since other readers refuse it."""
    write_text(path, json.dumps(content, indent=2, allow_nan=False) + "\n", checked=checked)


def write_npy(path: Path, array: Any) -> None:
    import numpy as np  # here: ``meada --help`` does not wait for it

    buffer = BytesIO()
    np.save(buffer, array, allow_pickle=False)
    write_bytes(path, buffer.getvalue())


def json_text(content: Any, indent: int | None = None) -> str:
    """JSON that every reader takes: a number that is not finite becomes null.

    >>> json_text({"nll": float("nan")})
    '{"nll": null}'
    """
    return json.dumps(_finite(content), indent=indent, allow_nan=False)


def _finite(content: Any) -> Any:
    if isinstance(content, float):
        return content if math.isfinite(content) else None
    if isinstance(content, dict):
        return {str(key): _finite(value) for key, value in content.items()}
    return [_finite(value) for value in content] if isinstance(content, list | tuple) else content


def read_bytes(path: Path) -> bytes:
    """The file's content; refused if it is not what was written."""
    content = regular(path, MAX_FILE_BYTES).read_bytes() if path.exists() else path.read_bytes()
    home = sums_folder(path)
    known = _sums(home).get(path.relative_to(home).as_posix()) if home else None
    if known and sha256(content).hexdigest() not in known:
        raise MeadaError(
            f"{path} is damaged or was edited: it must match its checksum in {SUMS} "
            f"({known[0][:12]}...), got {sha256(content).hexdigest()[:12]}..."
        )
    return content


def read_text(path: Path) -> str:
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise MeadaError(f"{path} must be text in UTF-8, got {error}") from None


def keep_sums(folder: Path) -> bool:
    """Start to keep checksums of files written to ``folder``; return whether they were kept before."""
    if (folder / SUMS).exists():
        return True
    _write_sums(folder, {})
    return False


def sums_folder(path: Path) -> Path | None:
    """The folder whose checksums cover ``path``."""
    return next((home for home in (path.parent, path.parent.parent) if (home / SUMS).is_file()), None)


def remove_drafts(folder: Path) -> None:
    """Remove temporary files of killed processes in ``folder`` and its subfolders; running ones lock theirs."""
    if not folder.is_dir():
        return
    for home in (folder, *[p for p in folder.iterdir() if p.is_dir() and not p.is_symlink()]):
        for path in home.iterdir():
            if path.is_file() and (DRAFT.fullmatch(path.name) or path.suffix == ".draft"):
                with suppress(OSError), path.open("rb") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    path.unlink()


def _replace(path: Path, content: bytes) -> None:
    """Write and rename a temporary file; retry if another process removed it before it was locked."""
    for _ in range(TRIES):
        with suppress(FileNotFoundError):
            return _written(path, content)
    _written(path, content)


def _written(path: Path, content: bytes) -> None:
    with naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with naming(path), os.fdopen(handle, "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # not a killed process's draft
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), 0o666 & ~_umask())
            os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _note(home: Path, path: Path, content: bytes, *, alone: bool) -> None:
    with _alone(home):
        sums, name, digest = _sums(home), path.relative_to(home).as_posix(), sha256(content).hexdigest()
        before = [] if alone else [old for old in sums.get(name, []) if old != digest]
        _write_sums(home, {**sums, name: [digest, *before]})


def _sums(home: Path) -> dict[str, list[str]]:
    try:
        held = json.loads(regular(home / SUMS, MAX_TEXT_BYTES).read_bytes())
        files: dict[str, list[str]] = held["files"]
        if held["crc32"] == crc32(files):
            return files
        what = "its own checksum does not match"
    except (ValueError, KeyError, TypeError) as error:
        what = f"{type(error).__name__}: {error}"
    raise MeadaError(f"{home / SUMS} is damaged ({what}); delete it to use the folder without checks")


def _write_sums(home: Path, files: dict[str, list[str]]) -> None:
    files = dict(sorted(files.items()))
    _replace(home / SUMS, json.dumps({"files": files, "crc32": crc32(files)}, indent=1).encode())


def crc32(content: Any) -> str:
    """Checksum of content as JSON, for a file that contains its own checksum."""
    return f"{zlib.crc32(json.dumps(content).encode()):08x}"


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """Lock the checksums for this process."""
    handle = os.open(home, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def new_folder(path: Path) -> None:
    """Make a folder to write to, unless it exists."""
    if path.exists() and not path.is_dir():
        raise MeadaError(f"--out must be a folder, got the file {path}")
    path.mkdir(parents=True, exist_ok=True)


def data_root(root: str | Path | None = None) -> Path:
    """``root`` if it is given, else ``$MEADA_DATA``, else ``~/.cache/meada``."""
    return Path(root or os.environ.get("MEADA_DATA") or Path.home() / ".cache" / "meada")
