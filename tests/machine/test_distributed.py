"""One run on several processes: the same batches, the same pool, the same end; or a clear one."""

import json
import os
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import tests_tiny
import torch
from safetensors.torch import load_file
from tests_waiting import SECONDS, wait_for, written
from torch import nn

from meada.errors import MeadaError
from meada.machine.distributed import ParallelLoss, World, synchronise_batch_norm, world_from_env
from meada.methods.method import Context
from meada.pool import Pool
from meada.runs.run import run

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
PROGRAM = Path(__file__).parents[1] / "tests_distributed.py"
load_tiny = tests_tiny.load_tiny
write_recipe = partial(tests_tiny.write_recipe, net="plain", batch_size=14, keep=True)
SLOW = "steps = 40\nstep_size = 1.0\nblock = 3"  # a maximisation phase long enough to be hit


def trust(recipe: Path) -> tuple[str, str]:
    return "--network", tests_tiny.network_of(recipe)


def torchrun(*words, **flags) -> subprocess.Popen[str]:
    options = [f"--{k.replace('_', '-')}={v}" for k, v in flags.items()]
    options = options if "nnodes" in flags else [*options, "--standalone"]
    command = [sys.executable, "-m", "torch.distributed.run", *options, *map(str, words)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, env=ENVIRONMENT, text=True, **pipes)


def finish(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate()
    assert process.returncode == 0, err
    return out


@pytest.fixture(autouse=True)
def one_thread():
    """The bits of a convolution depend on its threads: as many here as in each process."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def pools(out: Path) -> list[bytes]:
    return [(out / "pool" / f"round-{k}.npy").read_bytes() for k in (1, 2)]


def record(out: Path) -> dict:
    return json.loads((out / "record.json").read_text())


def farthest(a: Path, b: Path) -> float:
    one, two = (load_file(out / "model.safetensors") for out in (a, b))
    assert one.keys() == two.keys()
    return max(float((one[k] - two[k]).abs().max()) for k in one)


def test_the_statistics_of_batch_norm_are_averaged_with_the_loss():
    """Worked by hand for two processes, of which the other one has a loss of 3 and statistics of its own."""
    net = nn.BatchNorm1d(2)
    net.running_mean.copy_(torch.tensor([1.0, 3.0]))
    net.running_var.copy_(torch.tensor([2.0, 4.0]))
    other = torch.tensor([3.0, 3.0, 5.0, 4.0, 8.0])  # loss, means, variances
    shared = ParallelLoss.__new__(ParallelLoss)  # without its process group
    shared.net, shared.parts = net, nn.ModuleDict()
    shared.world = SimpleNamespace(size=2, all_reduce_sum=lambda mine: mine + other)
    assert float(shared.agree(torch.tensor(1.0))) == 2.0
    assert net.running_mean.tolist() == [2.0, 4.0] and net.running_var.tolist() == [3.0, 6.0]
    assert int(net.num_batches_tracked) == 0


def test_two_processes_descend_like_one_whatever_the_method_brings(tmp_path):
    """Batches of 13 of 60: shares of 7 and 6, and of 4 in the last; parts and weight draws too."""
    recipes = [
        write_recipe(tmp_path, batch_size=13),
        write_recipe(tmp_path, batch_size=13, method="par", settings=""),
        write_recipe(tmp_path, batch_size=13, method="meada-bnn"),
    ]
    said = finish(torchrun(PROGRAM, tmp_path / "two", *recipes, nproc_per_node=2))
    assert said.count("threads left") == 2 and "gloo" not in said  # which could abort at the exit
    for path in recipes:
        one, two = tmp_path / "one" / path.stem, tmp_path / "two" / path.stem
        run(load_tiny(path), one)
        assert farthest(one, two) < 1e-6
        assert [r["pool"] for r in record(two)["rounds"]] == [r["pool"] for r in record(one)["rounds"]]
        assert record(two)["environment"]["processes"] == 2
        assert record(one)["environment"]["processes"] == 1
        logs = [[json.loads(s) for s in (d / "log.jsonl").open()] for d in (one, two)]
        assert [line["step"] for line in logs[0]] == [line["step"] for line in logs[1]]
        losses = [[line["loss"] for line in log if "loss" in line] for log in logs]
        assert losses[0] == pytest.approx(losses[1], abs=1e-6)
        for rule, domains in record(one)["results"].items():
            assert record(two)["results"][rule]["noisy"] == pytest.approx(domains["noisy"], abs=1e-4)
            assert domains["noisy"]["n"] == 20
        assert record(two)["selected"] == record(one)["selected"]


def test_the_pool_is_the_same_to_the_bit_on_four_processes(tmp_path, single):
    """Both rounds before the first step: the weights are the same, whatever the processes."""
    recipe = write_recipe(tmp_path, net="tiny", min_steps=0, total_steps=6)
    words = ("train", recipe, "--out", tmp_path / "four", *trust(recipe))
    said = finish(torchrun("-m", "meada", *words, nproc_per_node=4))
    assert said.count("record.json") == 1  # one of them speaks
    run(load_tiny(recipe), tmp_path / "one")
    assert pools(tmp_path / "one") == pools(tmp_path / "four")
    assert not list((tmp_path / "four").glob(".processes"))


def rank_of(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    return next((w[5:].decode() for w in words if w.startswith(b"RANK=")), "")


def child(process: subprocess.Popen[str], rank: int) -> int:
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return next(int(pid) for pid in listed.split() if rank_of(int(pid)) == str(rank))


def test_a_killed_process_ends_the_run_and_one_alone_carries_it_on(tmp_path, single, monkeypatch):
    monkeypatch.setitem(ENVIRONMENT, "MEADA_PATIENCE", str(2 * SECONDS))  # the end must not come from waiting
    recipe = write_recipe(tmp_path, settings=SLOW, min_steps=0, total_steps=6)
    out = tmp_path / "run"
    process = torchrun("-m", "meada", "train", recipe, "--out", out, *trust(recipe), nproc_per_node=2)
    wait_for(lambda: (out / "pool" / "round-1.process-1.sums").exists(), process)
    os.kill(child(process, 1), signal.SIGKILL)
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode != 0
    assert "--resume continues the run" in err
    assert not (out / "record.json").exists()
    left, seen = sum(map(written, (out / "pool").glob("round-1*.sums"))), []

    def tell(phase: str, done: int, total: int) -> None:
        seen.append(done) if phase == "round 1 of 2, maximise" else None

    again = run(load_tiny(recipe), out, resume=True, tell=tell)
    assert left >= 3 and seen[:2] == [left, left + 3]  # none of what was written is made again
    run(load_tiny(recipe), tmp_path / "whole")
    assert pools(out) == pools(tmp_path / "whole") and again["environment"]["processes"] == 1


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_machines_without_a_common_folder_send_their_blocks_round(tmp_path, single):
    recipe = write_recipe(tmp_path, min_steps=0, total_steps=6)
    hosts, where = [], {"master_addr": "127.0.0.1", "master_port": free_port()}
    for rank in range(2):
        words = ("-m", "meada", "train", recipe, "--out", tmp_path / f"host-{rank}", *trust(recipe))
        flags = {"nnodes": 2, "node_rank": rank, "nproc_per_node": 1, **where}
        hosts.append(torchrun(*words, **flags))
    for host in hosts:
        finish(host)
    run(load_tiny(recipe), tmp_path / "one")
    assert pools(tmp_path / "host-0") == pools(tmp_path / "host-1") == pools(tmp_path / "one")
    assert not (tmp_path / "host-1" / "record.json").exists()
    assert farthest(tmp_path / "host-0", tmp_path / "one") < 1e-5


def test_a_batch_too_small_to_share_is_everybodys():
    index = torch.arange(7)
    whole = [World(rank, 4).share(index) for rank in range(4)]
    assert all(torch.equal(own, index) and weight == 1 for own, weight in whole)
    parts = [World(rank, 3).share(index) for rank in range(3)]
    assert torch.equal(torch.cat([own for own, _ in parts]), index)
    assert sum(weight for _, weight in parts) == pytest.approx(3)


def test_a_mean_of_weighted_shares_is_the_mean_of_the_batch():
    values = torch.rand(11)
    parts = [World(rank, 3).share(torch.arange(11)) for rank in range(3)]
    mean = sum(weight * values[own].mean() for own, weight in parts) / 3
    assert float(mean) == pytest.approx(float(values.mean()), abs=1e-12)


def test_what_a_step_draws_once_is_shared_and_what_samples_draw_is_not():
    alone = Context(generator=torch.Generator().manual_seed(1))
    assert alone.each is alone.generator
    own = torch.Generator()
    assert Context(own=own).each is own


def test_synchronised_batch_norm_needs_gpus():
    net, cpu = nn.Sequential(nn.BatchNorm2d(3)), torch.device("cpu")
    assert synchronise_batch_norm(net, wanted=True, world=World(), device=cpu) is net
    assert synchronise_batch_norm(net, wanted=False, world=World(0, 2), device=cpu) is net
    with pytest.raises(MeadaError, match="sync_batch_norm must be false on the cpu"):
        synchronise_batch_norm(net, wanted=True, world=World(0, 2), device=cpu)


def test_a_pool_without_a_folder_is_one_processs():
    pool = Pool(torch.rand(4, 3, 2, 2), torch.arange(4))
    with pytest.raises(ValueError, match="belongs to one process"):
        pool.grow(torch.arange(4), world=World(0, 2))


def test_the_environment_says_which_process_this_is(monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    assert world_from_env() == World()
    told = {"RANK": 3, "WORLD_SIZE": 4, "LOCAL_RANK": 1, "MASTER_ADDR": "h", "MASTER_PORT": 1}
    for name, value in told.items():
        monkeypatch.setenv(name, str(value))
    assert world_from_env() == World(3, 4, 1) and not world_from_env().is_main
