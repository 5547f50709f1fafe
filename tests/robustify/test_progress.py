"""Progress as plain lines where there is no terminal; the time left is that of all stages."""

import re

import pytest

from meada.robustify import progress as module
from meada.robustify.progress import progress


@pytest.fixture
def clock(monkeypatch):
    now = {"is": 0.0}
    monkeypatch.setattr(module.time, "monotonic", lambda: now["is"])
    return now


def test_lines_without_a_terminal_have_no_control_characters(clock, capsys):
    with progress() as bar:
        bar.reading(1, 10)
        bar.expect({"plain": 100.0, "hardened": 300.0, "score": 200.0})
        for second in range(0, 101, 20):
            clock["is"] = 1000.0 + second
            bar.tell("plain", second, 100)
    shown = capsys.readouterr()
    assert shown.out == "" and re.fullmatch(r"(robustify: [ -~]+\n)+", shown.err)
    assert "plain 0 %, 10 min left" in shown.err and "8 min left" in shown.err.splitlines()[-1]  # all candidates


def test_a_slower_machine_and_a_new_forecast_change_the_time_left(clock, capsys):
    with progress() as bar:
        bar.expect({"plain": 100.0, "score": 500.0})
        bar.tell("plain", 0, 100)
        clock["is"] = 100.0
        bar.tell("plain", 50, 100)  # twice as slow
        assert "18 min left" in capsys.readouterr().err.splitlines()[-1]
        bar.expect({"plain": 200.0, "score": 300.0})  # fitted again, at the pace of the machine
        clock["is"] = 200.0
        bar.tell("score", 0, 10)
        assert "5 min left" in capsys.readouterr().err.splitlines()[-1]


def test_quiet_is_quiet(clock, capsys):
    with progress(quiet=True) as bar:
        bar.expect({"plain": 10.0})
        bar.tell("plain", 1, 10)
    assert capsys.readouterr() == ("", "")
