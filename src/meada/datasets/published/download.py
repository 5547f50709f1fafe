"""Download a published file: resumable, verified by checksum, moved into place when complete."""

import http.client
import os
import re
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from meada.datasets.published import catalogue
from meada.datasets.published.catalogue import Domain, File, fetchable
from meada.errors import MeadaError

CHUNK = 1 << 16  # bytes
TIMEOUT = 30.0  # seconds without a byte
REDIRECTS = 5

Response = http.client.HTTPResponse
Progress = Callable[[int, int | None], None]  # bytes so far, bytes in all if known


def outstanding(entry: Domain, root: Path, force: bool = False) -> list[File]:
    """Files of a domain to download; an error if there is no address or a file differs."""
    if not fetchable(entry):
        places = " and ".join(str(root / file.path) for file in entry.files)
        raise MeadaError(f"{entry.name} has no address to download from: get it from {entry.page}; put it at {places}")
    return [file for file in entry.files if force or not _in_place(file, root)]


def _in_place(file: File, root: Path) -> bool:
    target = root / file.path
    if not target.exists():
        return False
    found = "none (it is a folder)" if target.is_dir() else catalogue.md5(target)
    if file.md5 == found:
        return True
    raise MeadaError(f"{target} has md5 {found}, not the published {file.md5}: move it away or replace it with --force")


def fetch(file: File, root: Path, progress: Progress = lambda done, total: None) -> Path:
    """Download ``file``, whose size and checksum are published, to its place below ``root``.

    What arrives is kept in ``NAME.part`` until it is whole and its checksum is the published one;
    after an interruption the next call goes on from there.
    """
    target, size = root / file.path, file.size or 0
    part = target.with_name(target.name + ".part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if part.is_symlink() or _size(part) > size:
            part.unlink()  # what arrives is written here, not where somebody's link leads
        if _size(part) < size:
            _receive(file, part, size, progress)
        if (found := catalogue.md5(part)) != file.md5:
            part.unlink()  # more bytes cannot make it right
            got = f"md5 {found}, not the published {file.md5}"
            raise MeadaError(f"{file.url} gave a file with {got}: run the same command to download it again")
        os.replace(part, target)
    except OSError as error:
        raise MeadaError(f"{error.filename or part} cannot be written: {error.strerror}") from error
    return target


def _receive(file: File, part: Path, size: int, progress: Progress) -> None:
    """Append the remaining bytes to ``part``."""
    response, done, offered = _ask(file, _size(part))
    with response:
        chunk = _read(response)
        # checked before what is already there is touched
        if done == 0 and catalogue.looks_like_html(chunk):
            raise _web_page(file)
        if chunk and offered not in (None, size):
            raise MeadaError(f"{file.url} must have {size:,} bytes as published, got {offered:,}")
        with part.open("ab") as stream:
            while chunk:
                if done + len(chunk) > size:
                    raise MeadaError(f"{file.url} must send {size:,} bytes, got more")
                stream.truncate(done)  # 0 where the server sends the whole file again
                stream.write(chunk)
                done += len(chunk)
                progress(done, size)
                chunk = _read(response)
            stream.flush()
            os.fsync(stream.fileno())
    if done < size:
        raise MeadaError(f"{file.url} stopped at {_size(part):,} of {size:,} bytes: repeat the command to continue")


def _read(response: Response) -> bytes:
    """The next bytes; empty at the end, or where the connection fails."""
    try:
        return response.read1(CHUNK)
    except (OSError, http.client.HTTPException):
        return b""


def _web_page(file: File) -> MeadaError:
    return MeadaError(f"{file.url} answers with a web page, not with {file.name}")


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _ask(file: File, have: int) -> tuple[Response, int, int | None]:
    """Request the file from byte ``have`` on: response, its first byte, and the file's size if known.

    A server that will not give just the rest is asked for the whole.
    """
    response = _open(file, have)
    if response.headers.get_content_type() in ("text/html", "application/xhtml+xml"):
        raise _web_page(file)
    if response.status != 206:
        start, total = 0, response.headers.get("Content-Length") or ""
    else:
        given = re.match(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
        start, total = (int(given[1]), given[2]) if given else (-1, "")
        if start != have:
            response.close()
            return _ask(file, 0)
    return response, start, int(total) if total.isdecimal() else None


def _open(file: File, have: int) -> Response:
    url = file.url or ""
    _check_scheme(url)
    headers = {"User-Agent": "meada", "Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    opener = urllib.request.build_opener(_Redirects)
    try:
        response: Response = opener.open(urllib.request.Request(url, headers=headers), timeout=TIMEOUT)
        return response
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:  # the server's file is shorter than what is here
            return _open(file, 0)
        reason = " ".join(str(error.reason).split())
        raise MeadaError(f"{url} answers {error.code} {reason}") from None
    except (OSError, http.client.HTTPException) as error:  # URLError is an OSError
        reason = " ".join(str(getattr(error, "reason", None) or error).split())
        raise MeadaError(f"{url} cannot be reached: {reason}") from None


def _check_scheme(url: str) -> None:
    if urlsplit(url).scheme not in ("http", "https"):
        raise MeadaError(f"'{url}' is not an http or https address")


class _Redirects(urllib.request.HTTPRedirectHandler):
    """A few redirections, to http and https only, and never from https down to http."""

    max_redirections = REDIRECTS

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        _check_scheme(newurl)
        if req.type == "https" and urlsplit(newurl).scheme == "http":
            raise MeadaError(f"{req.full_url} redirects to {newurl}, which is not encrypted")
        return super().redirect_request(req, fp, code, msg, headers, newurl)
