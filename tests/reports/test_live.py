"""A run as it goes: what is shown of it, and that its page is for this machine alone."""

import fcntl
import http.client
import threading
from pathlib import Path

import pytest
from tests_tiny import load_tiny, write_recipe

from meada.cli.reports import watch
from meada.errors import MeadaError
from meada.reports.live import going_on, lines, page, server
from meada.runs.run import run, with_position
from meada.runs.run_folder import RunFolder


@pytest.fixture
def folder(tmp_path: Path, single: None) -> Path:
    run(load_tiny(write_recipe(tmp_path)), tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def held(folder: Path):
    """As while a process trains there."""
    with RunFolder(folder).lock():
        yield folder


def test_a_finished_run_is_shown_whole(folder):
    text = "\n".join(lines(folder))
    assert "run: meada, seed 0, finished; step 20 of 20" in text
    assert (
        "round 2: training set of 240 images; cross-entropy from" in text
        and "noisy:" in text
        and "at step 20: loss" in text
    )


def test_an_unfinished_run_is_running_or_stopped(folder):
    (folder / "record.json").unlink()
    assert "stopped" in next(lines(folder)) and not going_on(folder)
    with RunFolder(folder).lock():
        assert "running" in next(lines(folder)) and going_on(folder.parent)


def test_a_running_one_says_where_it_is(held):
    (held / "record.json").unlink()
    tell = with_position(lambda *place: None, RunFolder(held))
    tell("round 2 of 3, minimise", 200, 10_000)
    tell("round 2 of 3, maximise", 12_288, 20_000)  # a new phase is not kept waiting
    tell("round 2 of 3, maximise", 12_544, 20_000)
    assert "  round 2 of 3, maximise: 12,288 of 20,000" in lines(held)
    (held / "position.json").write_text("{")
    assert not any("maximise" in line for line in lines(held))


def test_a_finished_run_leaves_no_position(folder):
    assert not (folder / "position.json").exists()


def test_looking_does_not_take_the_lock(folder):
    assert not RunFolder(folder).locked
    with open(folder / ".lock") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_the_page_refreshes_itself_while_a_run_goes_on(held):
    assert '<meta http-equiv="refresh"' in page(held)


def test_the_page_of_a_finished_run_stands_still(folder):
    assert 'http-equiv="refresh"' not in page(folder)


def ask(port: int, path: str = "/", host: str | None = None) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.putrequest("GET", path, skip_host=True)
    if host != "":
        connection.putheader("Host", host or f"127.0.0.1:{port}")
    connection.endheaders()
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_only_this_machine_and_only_one_page(folder):
    with server(folder) as opened:
        threading.Thread(target=opened.serve_forever, daemon=True).start()
        port = opened.server_port
        assert opened.server_address[0] == "127.0.0.1"
        status, text = ask(port)
        assert status == 200 and "<html" in text and "tiny" in text
        assert ask(port, host=f"localhost:{port}")[0] == 200
        for host in (
            "evil.example",
            f"evil.example:{port}",
            "127.0.0.1",
            "",
            f"127.0.0.1:{port}.evil",
        ):
            assert ask(port, host=host)[0] == 403
        for path in (
            "/record.json",
            "/../record.json",
            "/%2e%2e/etc/passwd",
            "//etc/passwd",
            "/?x",
        ):
            assert ask(port, path)[0] == 404
        opened.shutdown()


def test_a_port_in_use_is_a_sentence(folder):
    with server(folder) as opened, pytest.raises(MeadaError, match="must be a free port"):
        server(folder, opened.server_port)


def test_once_and_serve_are_not_given_together(tmp_path):
    """They would serve for ever."""
    with pytest.raises(MeadaError, match="at most one of --once and --serve may be given, got both"):
        watch(tmp_path, once=True, serve=0)
