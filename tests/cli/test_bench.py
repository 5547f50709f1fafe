"""``meada bench`` finds the benchmarks of a checkout, or says where they are."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from meada.cli.bench import checkout
from meada.errors import MeadaError

ROOT = Path(__file__).parents[2]


def meada(*words):
    return subprocess.run([sys.executable, "-m", "meada", *words], capture_output=True, text=True, check=False)


def test_options_reach_the_benchmarks(tmp_path):
    done = meada("bench", "--quick", "--case", "gemm", "--json", "--out", str(tmp_path / "gemm.json"))
    assert done.returncode == 0, done.stderr
    assert list(json.loads(done.stdout)["cases"]) == ["gemm"]
    assert json.loads((tmp_path / "gemm.json").read_text())["quick"] is True


def test_help_and_bad_options_are_those_of_the_benchmarks():
    assert "--floors" in meada("bench", "--help").stdout
    wrong = meada("bench", "--case", "gem")
    assert wrong.returncode == 2 and "did you mean 'gemm'" in wrong.stderr and "Traceback" not in wrong.stderr


def test_the_checkout_is_looked_for_next_to_the_package_and_here(tmp_path):
    assert checkout(tmp_path, ROOT) == ROOT
    (tmp_path / "benchmarks").mkdir()  # somebody else's benchmarks
    with pytest.raises(MeadaError, match="must run from a source checkout"):
        checkout(tmp_path)
