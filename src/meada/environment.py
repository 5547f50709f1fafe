"""What a result depends on besides its recipe: versions, machine, threads."""

import os
import platform
from collections.abc import Mapping
from typing import Any

import torch

from meada.version import __version__

SAME_BITS = (
    "On the same version of torch, kind of processor and number of threads a command repeats its "
    "record to the bit; elsewhere within rounding, which training magnifies."
)


def environment() -> dict[str, Any]:
    return {
        "meada": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
    }


def machine(environment: Mapping[str, Any]) -> str:
    """What a run computed on, for tables.

    >>> machine({"threads": 1, "processor": "some CPU"})
    '1 thread of some CPU'
    """
    threads = environment["threads"]
    return f"{threads} thread{'s' * (threads != 1)} of {environment['processor']}"


def repeat(environment: Mapping[str, Any], recipe: str) -> str:
    """The command that trains ``recipe`` as it was trained: sums depend on the number of threads.

    >>> repeat({"threads": 1}, "digits/erm --seed 2")
    'OMP_NUM_THREADS=1 meada train digits/erm --seed 2 --out NEW'
    """
    return f"OMP_NUM_THREADS={environment['threads']} meada train {recipe} --out NEW"


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [
                line.split(":", 1)[1].strip() for line in file if line.startswith("model name")
            ]
        return names[0]
    except (OSError, IndexError):
        return platform.processor() or "unknown"
