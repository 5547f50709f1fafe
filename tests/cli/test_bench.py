"""``meada bench`` finds the benchmarks of a checkout, or says where they are."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from meada.cli.info import checkout
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


FAULTS = """
import resource, sys
from meada.machine.memory import keep_freed_memory
if "keep" in sys.argv and not keep_freed_memory():
    raise SystemExit(3)
import torch
for _ in range(3):
    torch.ones(16_000_000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    torch.ones(16_000_000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(*words: str) -> int:
    command = [sys.executable, "-c", FAULTS, *words]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 3:
        pytest.skip("the C library is not glibc: there is nothing to set")
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_a_block_asked_for_again_is_one_that_was_freed() -> None:
    assert faults("keep") < faults() / 2
