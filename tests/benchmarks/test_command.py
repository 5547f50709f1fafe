"""``python -m benchmarks`` from the outside: what is printed, what is written, and the exit code."""

import json

import pytest
from benchmarks import command, suite
from benchmarks.__main__ import app
from benchmarks.measure import Result, Spread
from benchmarks.report import BEGIN, END
from benchmarks.suite import Case
from typer.testing import CliRunner

from meada.errors import MeadaError


@pytest.fixture(autouse=True)
def two_cases(monkeypatch):
    """The data case is twice as fast, whatever the machine; the others are not there."""

    def run(rounds, tell):
        sides = {"published": Spread.of([4.0]), "meada": Spread.of([2.0])}
        ratios = {"published": Spread(2.0, 1.0, 3.0), "loaders": Spread(1.0, 1.0, 1.0)}
        sides["published, 2 loaders"] = Spread.of([2.0])
        return Result(about="x", unit="us/image", rounds=rounds, sides=sides, ratios=ratios)

    case = Case(run, {"rounds": 3}, {"rounds": 1})
    monkeypatch.setattr(suite, "CASES", {"data": case, "gemm": case})


def meada_bench(*words):
    return CliRunner().invoke(app, words)


def floors(tmp_path, published):
    path = tmp_path / "floors.toml"
    path.write_text(f"[data]\npublished = {published}\nloaders = 0.5\n")
    return str(path)


def test_json_is_the_record():
    record = json.loads(meada_bench("--json", "--case", "data").stdout)
    assert list(record["cases"]) == ["data"] and record["quick"] is False
    assert record["cases"]["data"]["ratios"]["published"]["median"] == 2.0


def test_the_table_is_printed():
    got = meada_bench("--quick", "--case", "data", "--quiet")
    assert got.exit_code == 0 and "2 (1-3)" in got.stdout and "quick sizes" in got.stdout


def test_a_ratio_below_its_floor_is_exit_code_1_and_is_named(tmp_path):
    ok = meada_bench("--check", "--quiet", "--floors", floors(tmp_path, 2.0))
    assert ok.exit_code == 0
    bad = meada_bench("--check", "--quiet", "--floors", floors(tmp_path, 2.1))
    assert bad.exit_code == 1
    assert "data: published is 2.00, its floor is 2.1" in bad.output and "loaders is" not in bad.output


def test_without_check_nothing_is_compared(tmp_path):
    assert meada_bench("--quiet", "--floors", floors(tmp_path, 9)).exit_code == 0


def test_record_and_readme_are_written(tmp_path):
    (tmp_path / "README.md").write_text(f"# Speed\n{BEGIN}\n{END}\n")
    out = tmp_path / "results.json"
    assert meada_bench("--quick", "--quiet", "--case", "data", "--out", str(out)).exit_code == 0
    record = json.loads(out.read_text())
    assert record["command"] == "meada bench --quick"
    page = (tmp_path / "README.md").read_text()
    assert "`meada bench --quick` on" in page and "| data | us/image | 4 (4-4)" in page


def test_a_case_is_renewed_beside_the_others(tmp_path):
    out = tmp_path / "results.json"
    for case in ("gemm", "data", "gemm"):
        assert meada_bench("--quick", "--quiet", "--case", case, "--out", str(out)).exit_code == 0
    assert list(json.loads(out.read_text())["cases"]) == ["data", "gemm"]
    other = meada_bench("--quiet", "--case", "data", "--out", str(out))  # the full sizes
    assert "must have results of this machine and sizes, got others: move it away" in str(other.exception)


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["--case", "date"], "unknown case 'date': did you mean 'data'"),
        (["--check", "--quick"], "full sizes"),
        (["--floors", "nowhere.toml"], "nowhere.toml"),
    ],
)
def test_bad_input_is_refused_before_anything_is_measured(words, sentence, monkeypatch):
    monkeypatch.setattr(command, "run_suite", lambda *a, **k: pytest.fail("it was measured"))
    error = meada_bench(*words).exception
    assert isinstance(error, MeadaError | OSError) and sentence in str(error)
