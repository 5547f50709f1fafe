"""Download a published file: resumable, checked against its checksum, moved into place when whole."""

import http.client
import os
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from meada.datasets.published import disk
from meada.datasets.published.catalogue import Domain, File, fetchable
from meada.errors import MeadaError

CHUNK = 1 << 16  # bytes
TIMEOUT = 30.0  # seconds without a byte
REDIRECTS = 5

Response = http.client.HTTPResponse
Progress = Callable[[int, int | None], None]  # bytes so far, bytes in all if known


def outstanding(entry: Domain, root: Path, force: bool = False) -> list[File]:
    """Which files of a domain are to be downloaded; an error if that cannot or should not be."""
    if not fetchable(entry):
        places = " and ".join(str(root / file.path) for file in entry.files)
        raise MeadaError(
            f"{entry.name} has no address to download from: get it from {entry.page}, and put it at {places}"
        )
    return [file for file in entry.files if force or not _in_place(file, root)]


def _in_place(file: File, root: Path) -> bool:
    target = root / file.path
    if not target.exists():
        return False
    found = "none (it is a folder)" if target.is_dir() else disk.md5(target)
    if file.md5 in (None, found):
        return True
    raise MeadaError(
        f"{target} is there with md5 {found}, {disk.verdict(file, found)}: move it away, or replace it with --force"
    )


def fetch(file: File, root: Path, progress: Progress = lambda done, total: None) -> Path:
    """Download ``file`` to its place below ``root``.

    What arrives is kept in ``NAME.part`` until it is whole and its checksum is the published one;
    after an interruption the next call goes on from there.
    """
    target = root / file.path
    part = target.with_name(target.name + ".part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.size is not None and _size(part) > file.size:
            part.unlink()
        if file.size is None or _size(part) < file.size:
            _receive(file, part, progress)
        _verify(file, part)
        os.replace(part, target)
    except OSError as error:
        raise MeadaError(f"{error.filename or part} cannot be written: {error.strerror}") from error
    return target


@dataclass(frozen=True)
class Offer:
    """What a server sends: bytes from ``start`` on, of ``total`` if it says how many."""

    response: Response
    start: int
    total: int | None


def _receive(file: File, part: Path, progress: Progress) -> None:
    """Append to ``part`` what the server still has to give."""
    offer = _ask(file, _size(part))
    with offer.response as response:
        chunks = _chunks(response)
        try:
            first = next(chunks, b"")
            # looked at before what is already there is touched
            if offer.start == 0 and disk.looks_like_html(first):
                raise _web_page(file)
            if file.size is not None and offer.total != file.size:
                raise MeadaError(f"{file.url} offers {offer.total:,} bytes: {file.size:,} are published")
            _append(file, part, chain([first], chunks), offer, progress)
        except _BrokeOff:
            raise _interrupted(file, part, offer) from None
    if offer.total is not None and _size(part) < offer.total:
        raise _interrupted(file, part, offer)


def _append(file: File, part: Path, chunks: Iterable[bytes], offer: Offer, progress: Progress) -> None:
    with part.open("ab") as stream:
        stream.truncate(offer.start)  # 0 where the server sends the whole file again
        done = offer.start
        for chunk in chunks:
            done += len(chunk)
            if offer.total is not None and done > offer.total:
                raise MeadaError(f"{file.url} sends more than {offer.total:,} bytes")
            stream.write(chunk)
            progress(done, offer.total)
        stream.flush()
        os.fsync(stream.fileno())


class _BrokeOff(Exception):
    """The connection failed in the middle of the file."""


def _chunks(response: Response) -> Iterator[bytes]:
    try:
        while chunk := response.read1(CHUNK):
            yield chunk
    except (OSError, http.client.HTTPException) as error:
        raise _BrokeOff from error


def _interrupted(file: File, part: Path, offer: Offer) -> MeadaError:
    of = "" if offer.total is None else f" of {offer.total:,}"
    return MeadaError(
        f"{file.url} broke off at {_size(part):,}{of} bytes: they are kept in {part}, "
        "and the same command goes on from there"
    )


def _web_page(file: File) -> MeadaError:
    return MeadaError(f"{file.url} answers with a web page, not with {file.name}")


def _verify(file: File, part: Path) -> None:
    found = disk.md5(part)
    if file.md5 not in (None, found):
        part.unlink()  # more bytes cannot make it right
        raise MeadaError(
            f"{file.url} gave a file with md5 {found}, {disk.verdict(file, found)}: "
            "it is not kept, and the same command begins afresh"
        )


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _ask(file: File, have: int) -> Offer:
    """Ask for the file from byte ``have`` on; whole, if the server will not give just the rest."""
    response = _open(file, have)
    if response.headers.get_content_type() in ("text/html", "application/xhtml+xml"):
        raise _web_page(file)
    if response.status == 206:
        start, total = _content_range(response)
        if start != have:
            response.close()
            return _ask(file, 0)
    else:
        start, total = 0, _number(response.headers.get("Content-Length"))
    return Offer(response, start, file.size if total is None else total)


def _content_range(response: Response) -> tuple[int, int | None]:
    given = re.match(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
    return (int(given[1]), _number(given[2])) if given else (-1, None)


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


def _open(file: File, have: int) -> Response:
    url = file.url or ""
    _check_scheme(url)
    headers = {"User-Agent": "meada", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    opener = urllib.request.build_opener(_Redirects)
    try:
        response: Response = opener.open(urllib.request.Request(url, headers=headers), timeout=TIMEOUT)
        return response
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:  # the server's file is shorter than what is here
            return _open(file, 0)
        raise MeadaError(f"{url} answers {error.code} {_one_line(error.reason)}") from None
    except (OSError, http.client.HTTPException) as error:  # URLError is an OSError
        reason = getattr(error, "reason", None) or error
        raise MeadaError(f"{url} cannot be reached: {_one_line(reason)}") from None


def _one_line(reason: object) -> str:
    return " ".join(str(reason).split())


def _check_scheme(url: str) -> None:
    if urlsplit(url).scheme not in ("http", "https"):
        raise MeadaError(f"'{url}' is not an http or https address")


class _Redirects(urllib.request.HTTPRedirectHandler):
    """A few redirections, to http and https only, and never from https down to http."""

    max_redirections = REDIRECTS

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        _check_scheme(newurl)
        if req.type == "https" and urlsplit(newurl).scheme == "http":
            raise MeadaError(f"{req.full_url} redirects to {newurl}, which is not encrypted")
        return super().redirect_request(req, fp, code, msg, headers, newurl)
