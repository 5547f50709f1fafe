"""Downloads against a server on this machine: whole, broken off, resumed, and refused."""

import hashlib
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

import meada
from meada.datasets.published.catalogue import File
from meada.datasets.published.download import fetch
from meada.errors import MeadaError

PACKAGE = Path(meada.__file__).parent
CONTENT = bytes(range(256)) * 1200  # several chunks
PAGE = b"<!DOCTYPE html><html><body>Please log in</body></html>"


@dataclass
class Site:
    """What the server does with the next requests, and what it was asked."""

    content: bytes = CONTENT
    status: int = 200
    kind: str = "application/octet-stream"
    ranges: bool = True  # whether it knows Range
    cut: int | None = None  # bytes after which it hangs up
    chunked: bool = False
    wrong_range: bool = False
    location: str | None = None
    url: str = ""
    asked: list[str | None] = field(default_factory=list)  # the Range of each request


def handler(site: Site) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            site.asked.append(wanted)
            self.close_connection = True
            if site.location:
                self.send_response(302)
                self.send_header("Location", site.location)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and site.ranges else 0
            if start >= len(site.content) and start:
                self.send_error(416)
                return
            self.send_response(206 if start else site.status)
            self.send_header("Content-Type", site.kind)
            if start:
                first = 0 if site.wrong_range else start
                total = len(site.content)
                self.send_header("Content-Range", f"bytes {first}-{total - 1}/{total}")
            self.body(site.content[start:])

        def body(self, content: bytes) -> None:
            sent = content[: site.cut]
            if site.chunked:
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                self.wfile.write(b"%x\r\n" % len(content) + sent)
                if site.cut is None:
                    self.wfile.write(b"\r\n0\r\n\r\n")
                return
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, *args: object) -> None:
            pass

    return Handler


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    site = Site()
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(site))
    server.handle_error = lambda *request: None  # clients here hang up on purpose
    site.url = f"http://127.0.0.1:{server.server_port}/set.bin"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield site
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def file(site: Site) -> File:
    return File("set/set.bin", len(CONTENT), hashlib.md5(CONTENT).hexdigest(), site.url)


@pytest.fixture
def part(tmp_path: Path) -> Path:
    (tmp_path / "set").mkdir()
    return tmp_path / "set/set.bin.part"


def test_a_whole_file_is_put_in_place(site: Site, file: File, tmp_path: Path):
    seen: list[tuple[int, int | None]] = []
    path = fetch(file, tmp_path, lambda done, total: seen.append((done, total)))
    assert path == tmp_path / "set/set.bin"
    assert path.read_bytes() == CONTENT
    assert [p.name for p in path.parent.iterdir()] == ["set.bin"]
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert site.asked == [None]


def test_an_interrupted_download_goes_on_where_it_broke_off(site: Site, file: File, tmp_path: Path, part: Path):
    site.cut = 100_000
    with pytest.raises(MeadaError, match="stopped at 100,000 of 307,200 bytes.*to continue"):
        fetch(file, tmp_path)
    assert part.read_bytes() == CONTENT[:100_000]
    assert not (tmp_path / file.path).exists()
    site.cut = None
    assert fetch(file, tmp_path).read_bytes() == CONTENT
    assert site.asked == [None, "bytes=100000-"]
    assert not part.exists()


def test_a_broken_chunked_download_is_kept_and_resumed(site: Site, file: File, tmp_path: Path, part: Path):
    site.chunked, site.cut = True, 50_000
    with pytest.raises(MeadaError, match=r"stopped at [\d,]+ of 307,200 bytes"):
        fetch(file, tmp_path)
    assert 0 < part.stat().st_size <= 50_000
    site.cut = None
    assert fetch(file, tmp_path).read_bytes() == CONTENT


def test_ctrl_c_keeps_what_has_arrived(site: Site, file: File, tmp_path: Path, part: Path):
    def press(done: int, total: int | None) -> None:
        if done > 100_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(file, tmp_path, press)
    kept = part.stat().st_size
    assert kept > 100_000
    assert fetch(file, tmp_path).read_bytes() == CONTENT
    assert site.asked[1] == f"bytes={kept}-"


def test_a_server_that_ignores_range_is_read_from_the_beginning(site: Site, file: File, tmp_path: Path, part: Path):
    site.ranges = False
    part.write_bytes(CONTENT[:1000])
    assert fetch(file, tmp_path).read_bytes() == CONTENT
    assert site.asked == ["bytes=1000-"]


def test_a_server_that_answers_another_range_is_asked_again_for_all(site: Site, file: File, tmp_path: Path, part: Path):
    site.wrong_range = True
    part.write_bytes(CONTENT[:1000])
    assert fetch(file, tmp_path).read_bytes() == CONTENT
    assert site.asked == ["bytes=1000-", None]


def test_a_part_beyond_the_server_s_file_is_begun_afresh(site: Site, file: File, tmp_path: Path, part: Path):
    part.write_bytes(CONTENT + b"more")
    assert fetch(file, tmp_path).read_bytes() == CONTENT


def test_a_part_that_is_already_whole_needs_no_server(site: Site, file: File, tmp_path: Path, part: Path):
    part.write_bytes(CONTENT)
    assert fetch(file, tmp_path).read_bytes() == CONTENT
    assert site.asked == []


def test_a_wrong_checksum_is_refused_and_the_old_file_stays(site: Site, file: File, tmp_path: Path, part: Path):
    site.content = CONTENT[::-1]
    (tmp_path / file.path).write_bytes(b"old")
    with pytest.raises(MeadaError, match=f"md5 .*, not the published {file.md5}"):
        fetch(file, tmp_path)
    assert (tmp_path / file.path).read_bytes() == b"old"
    assert not part.exists()


def test_a_spoilt_part_does_not_stand_in_the_way_for_ever(site: Site, file: File, tmp_path: Path, part: Path):
    part.write_bytes(b"x" * 1000)
    with pytest.raises(MeadaError, match="run the same command to download it again"):
        fetch(file, tmp_path)
    assert fetch(file, tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize("status", [404, 403, 500])
def test_a_refusal_is_passed_on_and_the_part_kept(site: Site, file: File, tmp_path: Path, part: Path, status: int):
    site.status, site.ranges = status, False
    part.write_bytes(CONTENT[:1000])
    with pytest.raises(MeadaError, match=f"{site.url} answers {status} "):
        fetch(file, tmp_path)
    assert part.read_bytes() == CONTENT[:1000]


@pytest.mark.parametrize(
    ("kind", "page"),
    [("text/html; charset=utf-8", b"Please log in"), ("application/octet-stream", PAGE)],
)
def test_a_web_page_is_not_data_and_the_part_is_kept(
    site: Site, file: File, tmp_path: Path, part: Path, kind: str, page: bytes
):
    site.content, site.kind, site.ranges = page, kind, False
    part.write_bytes(CONTENT[:1000])
    with pytest.raises(MeadaError, match="answers with a web page, not with set.bin"):
        fetch(file, tmp_path)
    assert part.read_bytes() == CONTENT[:1000]
    assert not (tmp_path / file.path).exists()


def test_another_size_is_refused_before_a_byte_is_written(site: Site, file: File, tmp_path: Path, part: Path):
    site.content = CONTENT + b"!"
    with pytest.raises(MeadaError, match="must have 307,200 bytes as published, got 307,201"):
        fetch(file, tmp_path)
    assert not part.exists()


def test_more_than_the_published_size_is_cut_short(site: Site, file: File, tmp_path: Path):
    site.content, site.chunked = CONTENT * 4, True
    with pytest.raises(MeadaError, match="must send 307,200 bytes, got more"):
        fetch(file, tmp_path)


def test_no_server_is_one_sentence(file: File, tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch):
    closed = replace(file, url="http://127.0.0.1:9/set.bin")  # the discard port: nobody listens
    with pytest.raises(MeadaError, match="cannot be reached: .*refused"):
        fetch(closed, tmp_path)

    def unplugged(*args: object, **options: object) -> None:
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", unplugged)
    with pytest.raises(MeadaError, match="cannot be reached: .*name resolution"):
        fetch(file, tmp_path)


def test_redirections_are_followed_a_few_times_and_to_the_web_only(site: Site, file: File, tmp_path: Path):
    site.location = site.url
    with pytest.raises(MeadaError, match="answers 302"):
        fetch(file, tmp_path)
    assert len(site.asked) <= 6
    for elsewhere in ("file:///etc/hostname", "ftp://127.0.0.1/set.bin"):
        site.location = elsewhere
        with pytest.raises(MeadaError, match="not allowed|is not an http or https address"):
            fetch(file, tmp_path)


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://127.0.0.1/x", "set.bin"])
def test_only_the_web_is_fetched_from(file: File, tmp_path: Path, url: str):
    with pytest.raises(MeadaError, match="is not an http or https address"):
        fetch(replace(file, url=url), tmp_path)


def test_a_root_that_is_a_file_is_one_sentence(site: Site, file: File, tmp_path: Path):
    (tmp_path / "root").write_text("")
    with pytest.raises(MeadaError, match="cannot be written: "):
        fetch(file, tmp_path / "root")


def test_what_arrives_is_not_written_through_a_link(site: Site, file: File, tmp_path: Path):
    (tmp_path / "precious").write_bytes(b"precious")
    part = (tmp_path / file.path).with_name(f"{file.name}.part")
    part.parent.mkdir(parents=True, exist_ok=True)
    part.symlink_to(tmp_path / "precious")
    assert fetch(file, tmp_path).read_bytes() == CONTENT
    assert (tmp_path / "precious").read_bytes() == b"precious"


def test_no_archive_is_ever_unpacked():
    """Paths come from the catalogue alone: names inside an archive (``..``, links) have no say."""
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text()
        assert not any(word in text for word in ("tarfile", "zipfile", "unpack_archive", "extractall")), path
