"""Choose the device and the precision; raise an error with the reason if this machine lacks support."""

import os
import subprocess
import sys
from typing import Any, Literal

import torch
from torch import nn

from meada.errors import MeadaError

Device = Literal["auto", "cpu", "cuda", "mps"]
Precision = Literal["fp32", "bf16"]

PROBE = """
import torch
a = torch.rand(64, 64).bfloat16()
assert (a @ a).float().isfinite().all()
x = torch.rand(2, 3, 16, 16).bfloat16().requires_grad_()
torch.nn.functional.conv2d(x, torch.rand(4, 3, 3, 3).bfloat16()).float().sum().backward()
assert x.grad.float().isfinite().all()
"""


def choose(device: Device) -> torch.device:
    """The torch device; ``auto`` is the first available of CUDA, MPS and CPU."""
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if device == "auto":
        return torch.device(next(name for name, is_there in there.items() if is_there))
    if not there.get(device, False):
        found = ", ".join(name for name, is_there in there.items() if is_there)
        raise MeadaError(f"device must be one of {found} on this machine, got '{device}'")
    return torch.device(device)


def probe_bf16(timeout: float = 120.0) -> str:
    """Why bf16 products do not work on this CPU; empty if they do.

    They are tried in a child process: on some CPUs they are an illegal instruction, which ends the
    process that meets it.
    """
    command = [sys.executable, "-c", PROBE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=os.environ)
    if done.returncode == 0:
        return ""
    if done.returncode < 0:
        return (
            f"a bf16 product ended a test process with signal {-done.returncode}; set "
            "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 before torch starts, or use fp32"
        )
    last = (done.stderr.strip().splitlines() or ["no message"])[-1]
    return f"a bf16 product failed in a test process ({last}); use fp32"


def in_precision(net: nn.Module, precision: Precision, device: torch.device) -> nn.Module:
    """Run the network's forward pass under autocast if ``bf16``, with logits in fp32.

    Weights, loss, update and pool stay fp32 either way.
    """
    if precision == "fp32":
        return net
    if device.type == "cpu" and (fault := probe_bf16()):
        raise MeadaError(f"precision 'bf16': {fault}")
    open_contexts: list[Any] = []

    def enter(*_: Any) -> None:
        context = torch.autocast(device.type, dtype=torch.bfloat16)
        context.__enter__()
        open_contexts.append(context)

    def leave(_: nn.Module, inputs: Any, output: Any) -> Any:
        open_contexts.pop().__exit__(None, None, None)
        return output.float() if isinstance(output, torch.Tensor) else output

    net.register_forward_pre_hook(enter)
    net.register_forward_hook(leave, always_call=True)
    return net
