"""Freed memory is kept: a big block asked for again costs no page faults."""

import subprocess
import sys

import pytest

FAULTS = """
import resource, sys
from meada.machine.allocator import keep_freed_memory
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
