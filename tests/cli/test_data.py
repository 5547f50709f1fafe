"""``meada data``: the three commands as a user meets them."""

import bz2
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from typer.testing import CliRunner, Result

from meada.cli.data import app
from meada.datasets.published.catalogue import CATALOGUE, Domain, File
from meada.errors import MeadaError

USPS = bz2.compress(b"1 1:0.5 \n10 2:-1.0 \n")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """USPS in small, published by a server on this machine; no other domain can be reached."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site/usps.t.bz2").write_bytes(USPS)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "site")))
    url = f"http://127.0.0.1:{server.server_port}/usps.t.bz2"
    file = File("usps/usps.t.bz2", len(USPS), hashlib.md5(USPS).hexdigest(), url)
    monkeypatch.setitem(CATALOGUE, "usps", Domain("usps", "digits", 2, (file,), "a page"))
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "data"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def put_usps(root: Path, content: bytes = USPS) -> Path:
    path = root / "usps/usps.t.bz2"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def states(result: Result) -> dict[str, str]:
    return {row["name"]: row["state"] for row in json.loads(result.stdout)["domains"]}


def test_list_shows_every_domain_and_what_is_there(root: Path):
    put_usps(root)
    (root / "mnist_m/mnist_m_test").mkdir(parents=True)
    result = run("list", "--root", root)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == f"data folder: {root}"
    for name, images, state in [
        ("usps", "2,007", "present"),
        ("mnist", "70,000", "absent"),
        ("svhn", "26,032", "absent"),
        ("mnist_m", "9,001", "incomplete"),
        ("syn", "9,553", "absent"),
    ]:
        (line,) = [line for line in lines if line.split()[0] == name]
        assert line.split()[1:3] == [images, state]
        assert str(root / name) in line


def test_list_as_json(root: Path):
    put_usps(root)
    result = run("list", "--root", root, "--json")
    assert states(result)["usps"] == "present"
    content = json.loads(result.stdout)
    assert content["root"] == str(root)
    usps = next(row for row in content["domains"] if row["name"] == "usps")
    assert usps["files"][0]["md5"] == "8ea070ee2aca1ac39742fdd1ef5ed118"
    assert usps["get"] == "meada data get usps"


def test_check_says_whole_different_and_absent_and_succeeds(root: Path, served: None):
    put_usps(root)
    result = run("check", "--root", root)
    assert result.exit_code == 0
    lines = {line.split()[0]: line for line in result.stdout.splitlines()}
    assert lines.keys() == CATALOGUE.keys()
    assert lines["usps"].split(maxsplit=2)[1:] == ["whole", "2 images; checksums as published"]
    assert lines["syn"].split()[1] == "absent"
    assert "yaroslav.ganin" in lines["syn"]
    put_usps(root, bz2.compress(b"3 1:0.25 \n"))
    result = run("check", "usps", "--root", root)
    assert result.exit_code == 0
    assert "different" in result.stdout
    assert "1 images; 2 images are published; usps/usps.t.bz2 has md5" in result.stdout


def test_check_as_json(root: Path, served: None):
    put_usps(root)
    result = run("check", "usps", "syn", "--root", root, "--json")
    assert states(result) == {"usps": "whole", "syn": "absent"}
    usps = json.loads(result.stdout)["domains"][0]
    assert usps["images"] == 2
    assert usps["md5"] == {"usps/usps.t.bz2": hashlib.md5(USPS).hexdigest()}


def test_check_reads_on_after_a_damaged_file_and_fails_at_the_end(root: Path):
    put_usps(root, USPS[:-5])
    path = root / "svhn/test_32x32.mat"
    path.parent.mkdir()
    path.write_text("<html>moved</html>")
    (root / "mnist_m/mnist_m_test").mkdir(parents=True)
    result = run("check", "--root", root, "--json")
    there = {"svhn": "unreadable", "mnist_m": "incomplete", "usps": "unreadable"}
    assert states(result) == {**dict.fromkeys(CATALOGUE, "absent"), **there}
    assert isinstance(result.exception, MeadaError)
    said = str(result.exception)
    assert said.startswith(f"svhn is unreadable: {path} is a web page")
    assert said.endswith("(and 2 more, above)")


def test_a_file_that_may_not_be_opened_is_unreadable(root: Path, monkeypatch: pytest.MonkeyPatch):
    put_usps(root)

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("meada.machine.limits.bz2.open", refuse)
    result = run("check", "usps", "--root", root)
    assert "usps            unreadable" in result.stdout
    assert "Permission denied" in str(result.exception)


@pytest.mark.parametrize("command", ["check", "get"])
def test_an_unknown_domain_names_the_nearest(root: Path, command: str):
    result = run(command, "svnh", "--root", root)
    assert isinstance(result.exception, MeadaError)
    assert "unknown domain 'svnh': did you mean 'svhn'?" in str(result.exception)


def test_get_downloads_once(root: Path, served: None):
    result = run("get", "usps", "--root", root)
    assert result.exit_code == 0
    assert (root / "usps/usps.t.bz2").read_bytes() == USPS
    assert f"{len(USPS)} bytes, md5 as published" in result.stdout
    assert "already there" in run("get", "usps", "--root", root).stdout


def test_get_replaces_another_file_only_by_force(root: Path, served: None):
    path = put_usps(root, b"rebuilt")
    result = run("get", "usps", "--root", root)
    assert isinstance(result.exception, MeadaError)
    assert "--force" in str(result.exception)
    assert path.read_bytes() == b"rebuilt"
    assert run("get", "usps", "--root", root, "--force").exit_code == 0
    assert path.read_bytes() == USPS


def test_get_of_what_has_no_address_fetches_nothing_else_either(root: Path, served: None):
    result = run("get", "usps", "syn", "--root", root)
    assert isinstance(result.exception, MeadaError)
    assert "syn has no address to download from" in str(result.exception)
    assert not root.exists()


def test_the_root_comes_from_the_environment(root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MEADA_DATA", str(root))
    assert run("list").stdout.startswith(f"data folder: {root}\n")


@pytest.mark.parametrize("command", ["list", "check", "get"])
def test_help_has_an_example(command: str):
    assert f"Example: meada data {command}" in run(command, "--help").stdout


def test_the_command_line_starts_without_torch():
    code = "import sys, meada.cli.data; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_published_files_are_whole(real_data: Path):
    result = run("check", "--root", real_data, "--json")
    assert result.exit_code == 0
    found = states(result)
    assert found["mnist"] == found["usps"] == found["mnist_m"] == "whole"
    assert found["svhn"] in ("whole", "different")  # readable either way
