"""Device and precision: refused with a reason, and bf16 for the network alone."""

import subprocess

import pytest
import torch
from torch import nn

from meada import perturb
from meada.errors import MeadaError
from meada.machine.device import choose, in_precision, probe_bf16
from meada.networks.embedding import embedding_passes

CPU = torch.device("cpu")


def small() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 5))


def test_auto_is_something_and_a_missing_device_is_named():
    assert choose("auto").type in {"cpu", "cuda", "mps"} and choose("cpu") == CPU
    if not torch.cuda.is_available():
        with pytest.raises(MeadaError, match="device must be one of .*cpu.*, got 'cuda'"):
            choose("cuda")


def dies(signal):
    return lambda *a, **k: subprocess.CompletedProcess(a, signal, "", "RuntimeError: no bf16")


def test_a_cpu_that_cannot_is_refused_with_a_reason(monkeypatch):
    monkeypatch.setattr("meada.machine.device.subprocess.run", dies(-4))
    with pytest.raises(MeadaError, match="signal 4; set ONEDNN_MAX_CPU_ISA"):
        in_precision(small(), "bf16", CPU)
    monkeypatch.setattr("meada.machine.device.subprocess.run", dies(1))
    with pytest.raises(MeadaError, match="no bf16.*use fp32"):
        in_precision(small(), "bf16", CPU)


def test_bf16_is_for_the_network_alone(single, monkeypatch):
    if fault := probe_bf16():
        pytest.skip(f"no bf16 on this CPU: {fault}")
    net = small()
    inside = []
    net[0].register_forward_hook(lambda m, a, out: inside.append(out.dtype))
    x, y = torch.rand(4, 3, 8, 8), torch.tensor([0, 1, 2, 3])
    plain = net(x)
    in_precision(net, "bf16", CPU)
    logits = net(x)
    assert inside == [torch.float32, torch.bfloat16]
    assert logits.dtype == torch.float32 and net[0].weight.dtype == torch.float32
    assert not torch.equal(plain, logits) and torch.allclose(plain, logits, atol=0.05)
    with embedding_passes(net) as forward:
        assert [t.dtype for t in forward(x)] == [torch.float32, torch.float32]
    harder = perturb(net, x, y, beta=1.0, gamma=1.0, step_size=0.1, steps=2)
    assert harder.dtype == torch.float32
    with pytest.raises(RuntimeError):
        net(torch.rand(4, 2, 8, 8))  # autocast is left even when the forward pass fails
    assert not torch.is_autocast_enabled("cpu")


def test_fp32_is_left_alone():
    net = small()
    assert in_precision(net, "fp32", CPU) is net and not net._forward_hooks
