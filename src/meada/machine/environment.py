"""Versions, machine and number of threads, on which results depend besides the recipe."""

import os
import platform
import warnings
from pathlib import Path
from typing import Any

import torch

from meada import __version__
from meada.errors import MeadaError


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


def arithmetic(device: torch.device) -> dict[str, Any]:
    """Settings on which the last bits of a sum depend."""
    return {
        "torch": str(torch.__version__),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "device": device.type,
        "threads": torch.get_num_threads(),
    }


def match_arithmetic(before: dict[str, Any] | None, device: torch.device, checkpoint: Path, *, accept: bool) -> None:
    """Use the number of threads of the process that wrote ``checkpoint``; refuse if the bits would differ.

    ``before`` is that process's :func:`arithmetic`; None where an earlier version left it out.
    """
    now = arithmetic(device)
    changed = {k: (before[k], now[k]) for k in now if before and before.get(k, now[k]) != now[k]}
    if not changed:
        return
    changes = ", ".join(f"{k} {old} (now {new})" for k, (old, new) in changed.items())
    if accept:
        warnings.warn(f"{checkpoint} was written with {changes}: weights will differ in their last bits", stacklevel=2)
    elif changed.keys() == {"threads"}:
        torch.set_num_threads(int(changed["threads"][0]))
        warnings.warn(
            f"{checkpoint} was written with {changes}: its number of threads is kept, and with it the run's bits; "
            "--accept-different-bits uses the other one",
            stacklevel=2,
        )
    else:
        raise MeadaError(
            f"{checkpoint} was written with {changes}: the weights would differ in their last bits from those of an "
            "uninterrupted run; --accept-different-bits resumes nevertheless"
        )


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
        return names[0]
    except (OSError, IndexError):
        return platform.processor() or "unknown"
