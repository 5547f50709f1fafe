"""Runs as real processes: killed in either phase, resumed to the very same weights."""

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests_resume import stopped_and_resumed
from tests_tiny import load_tiny, network_of, write_recipe
from tests_waiting import wait_for, written

from meada.errors import MeadaError
from meada.runs.run import run
from meada.runs.run_folder import RunFolder

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def start(recipe: Path, out: Path, *more: str, **options) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "meada", "train", str(recipe), "--out", str(out), *more]
    command += ["--network", network_of(recipe)]
    return subprocess.Popen(
        command,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def finish(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate()
    assert process.returncode == 0, err
    return out


def weights(out: Path) -> dict[str, torch.Tensor]:
    return load_file(out / "model.safetensors")


def equal(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


def without_times(record: dict) -> dict:
    kept = {k: v for k, v in record.items() if k != "seconds"}
    return {
        **kept,
        "rounds": [{k: v for k, v in r.items() if k != "seconds"} for r in record["rounds"]],
    }


SLOW = "steps = 40\nstep_size = 1.0\nblock = 2"  # a maximisation phase long enough to be hit


def test_killed_in_both_phases_and_resumed_it_is_the_same_run(tmp_path):
    recipe = write_recipe(tmp_path, settings=SLOW, total_steps=60)
    finish(start(recipe, tmp_path / "whole", "--quiet"))
    out = tmp_path / "killed"
    moments = {
        "minimise": lambda: (out / "checkpoint.pt").exists() and not (out / "pool").exists(),
        "maximise": lambda: (out / "pool" / "round-1.json").exists(),
        "second maximise": lambda: (out / "pool" / "round-2.json").exists(),
        "to the end": lambda: '"step": 20' in ((out / "log.jsonl").read_text()),
    }
    for number, moment in enumerate(moments.values()):
        process = start(recipe, out, "--quiet", *(["--resume"] if number else []))
        wait_for(moment, process)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not (out / "record.json").exists()
    assert written(out / "pool" / "round-2.sums") == 120
    finish(start(recipe, out, "--quiet", "--resume"))
    assert equal(weights(tmp_path / "whole"), weights(out))
    records = [json.loads((d / "record.json").read_text()) for d in (tmp_path / "whole", out)]
    assert without_times(records[0]) == without_times(records[1])
    logs = [(d / "log.jsonl").read_text().splitlines() for d in (tmp_path / "whole", out)]
    steps = [[json.loads(line)["step"] for line in log] for log in logs]
    assert steps[0] == steps[1]


def test_finished_blocks_of_a_maximisation_are_not_made_again(tmp_path):
    recipe = write_recipe(tmp_path, settings=SLOW)
    out = tmp_path / "run"
    process = start(recipe, out, "--quiet")
    sums = out / "pool" / "round-1.sums"
    wait_for(lambda: sums.exists() and written(sums) >= 10, process)
    process.kill()
    process.wait()
    assert float((out / "pool" / "round-1.seconds").read_text().split()[0]) > 0  # then its checksum
    kept = (out / "pool" / "round-1.npy").read_bytes()
    left = written(sums)
    seen: list[int] = []

    def tell(phase: str, done: int, total: int) -> None:
        if phase == "round 1 of 2, maximise":
            seen.append(done)

    torch.set_default_dtype(torch.float32)
    run(load_tiny(recipe, ["pool.keep=true"]), tmp_path / "other")
    (out / "pool" / "round-1.seconds").write_text("1e6")
    run(load_tiny(recipe), out, resume=True, tell=tell)
    assert seen[:2] == [left, left + 2]
    record = json.loads((out / "record.json").read_text())
    assert 1e6 < record["rounds"][0]["seconds"] < record["seconds"]["maximise"] < 1.5e6
    start_of_images = len(kept) - 60 * 3 * 32 * 32 * 4
    whole = (tmp_path / "other" / "pool" / "round-1.npy").read_bytes()
    upto = start_of_images + left * 3 * 32 * 32 * 4
    assert kept[start_of_images:upto] == whole[start_of_images:upto]


def test_a_loss_is_noted_between_candidates_and_once_after_a_resume(tmp_path, single):
    """At most a hundred a run besides, so one a step here."""
    recipe = load_tiny(write_recipe(tmp_path), ["evaluation.every=10"])
    stopped_and_resumed(recipe, tmp_path, step=15)
    whole, cut = ([json.loads(line) for line in (tmp_path / name / "log.jsonl").open()] for name in ("whole", "cut"))
    losses = lambda log: [(line["step"], line["loss"]) for line in log if "loss" in line]
    assert [step for step, _ in losses(whole)] == [*range(1, 21)]
    assert [line["step"] for line in whole if "scores" in line] == [10, 20]
    assert losses(cut) == losses(whole)


def test_a_round_that_is_made_again_is_told_once(tmp_path):
    """Killed between the round's line and the checkpoint that holds it."""
    folder = RunFolder(tmp_path)
    for line in ({"step": 6, "loss": 1.0}, {"step": 6, "round": 1}, {"step": 7, "loss": 1.0}):
        folder.write_log(line)
    folder.rewind_log(6, rounds=1)
    assert len(folder.log.read_text().splitlines()) == 2
    folder.rewind_log(6, rounds=0)
    kept = json.loads(folder.log.read_text())
    assert kept.pop("crc32") and kept == {"step": 6, "loss": 1.0}


@pytest.fixture
def finished(tmp_path, single):
    recipe = load_tiny(write_recipe(tmp_path))
    return recipe, tmp_path / "run", run(recipe, tmp_path / "run")


def test_a_method_that_grows_nothing_is_resumed_after_a_round(tmp_path, single):
    recipe = load_tiny(write_recipe(tmp_path, method="erm", settings=""))
    whole, cut = stopped_and_resumed(recipe, tmp_path, step=14)  # two rounds are over
    assert cut["results"] == whole["results"]
    assert equal(weights(tmp_path / "whole"), weights(tmp_path / "cut"))


def test_a_record_holds_what_was_promised(finished):
    recipe, out, record = finished
    wanted = "meada recipe method network seed environment rounds seconds steps results"
    assert record.keys() >= set(wanted.split())
    assert record["results"].keys() == {"last", "source_val", "crafted", "oracle"}
    for results in record["results"].values():
        assert results.keys() == {"noisy", "blurred"}
        assert all(s.keys() >= {"accuracy", "n", "ece", "nll"} for s in results.values())
    assert [r["pool"] for r in record["rounds"]] == [120, 240]
    for line in record["rounds"]:
        assert line.keys() >= {"round", "pool", "ce", "entropy", "cost", "linf", "seconds"}
        assert line["ce"][1] > line["ce"][0]  # harder
    assert record["seconds"].keys() == {"minimise", "maximise", "evaluate"}
    assert record["steps"] == 20
    names = {p.name for p in out.iterdir()}
    assert names >= {
        "recipe.toml",
        "record.json",
        "log.jsonl",
        "model.safetensors",
        "checkpoint.pt",
    }
    assert not {"pool", "candidates"} & names
    torch.load(out / "checkpoint.pt", weights_only=True)


def test_the_same_seed_gives_the_same_bits(finished, tmp_path):
    recipe, out, record = finished
    again = run(recipe, tmp_path / "again")
    assert equal(weights(out), weights(tmp_path / "again"))
    assert without_times(again) == without_times(record)
    other = run(recipe.model_copy(update={"seed": 1}), tmp_path / "other")
    assert not equal(weights(out), weights(tmp_path / "other")) and other["seed"] == 1


def test_an_existing_run_is_never_overwritten(finished):
    recipe, out, record = finished
    with pytest.raises(MeadaError, match="already holds a run: --resume"):
        run(recipe, out)
    assert run(recipe, out, resume=True) == record


def test_a_run_that_never_got_under_way_may_begin_again(finished, tmp_path):
    recipe = finished[0]
    data = {"name": "domains", "folder": str(tmp_path / "nowhere"), "sources": ["photo"]}
    lost = recipe.model_copy(update={"data": data})
    for _ in range(2):  # what is missing is named each time, not a folder in the way
        with pytest.raises(MeadaError, match="nowhere"):
            run(lost, tmp_path / "out")
    with pytest.raises(MeadaError, match="already holds a run: --resume"):
        run(recipe, tmp_path / "out")  # another recipe, which may be somebody's own file


def test_resuming_with_other_settings_is_refused(finished, tmp_path):
    recipe, out, _ = finished
    with pytest.raises(MeadaError, match=r"seed \(0 there, 5 given\)"):
        run(recipe.model_copy(update={"seed": 5}), out, resume=True)
    with pytest.raises(MeadaError, match="must hold a run to resume"):
        run(recipe, tmp_path / "nowhere", resume=True)


def test_folders_that_cannot_be(finished, tmp_path):
    recipe = finished[0]
    (tmp_path / "file").write_text("")
    with pytest.raises(MeadaError, match="--out must be a folder, got the file .*file"):
        run(recipe, tmp_path / "file")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.doc").write_text("years of work")
    with pytest.raises(MeadaError, match="--out must be a new or empty folder"):
        run(recipe, tmp_path / "full")


def test_two_processes_do_not_share_a_folder(tmp_path):
    recipe = write_recipe(tmp_path, settings=SLOW, total_steps=2000)
    one = start(recipe, tmp_path / "run", "--quiet")
    wait_for(lambda: (tmp_path / "run" / "checkpoint.pt").exists(), one)
    two = start(recipe, tmp_path / "run", "--resume")
    _, err = two.communicate()
    one.kill()
    one.communicate()
    assert two.returncode == 2 and "another process is training there" in err


def test_ctrl_c_keeps_the_last_state_and_says_how_to_go_on(tmp_path):
    recipe = write_recipe(tmp_path, total_steps=3000)
    # Where the tests themselves run in the background, children would ignore the signal.
    heard = lambda: signal.signal(signal.SIGINT, signal.default_int_handler)
    process = start(recipe, tmp_path / "run", preexec_fn=heard)
    wait_for(lambda: (tmp_path / "run" / "checkpoint.pt").exists(), process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130 and "--resume" in err and "Traceback" not in err
    torch.load(tmp_path / "run" / "checkpoint.pt", weights_only=True)


def test_a_full_disk_is_one_sentence(tmp_path):
    """A limit on the size of files stands for the disk: writing fails half-way, as there."""
    recipe = write_recipe(tmp_path)
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
    process = start(recipe, tmp_path / "run", preexec_fn=limit)
    _, err = process.communicate()
    assert process.returncode == 2 and "Traceback" not in err
    assert "File too large" in err and "round-1" in err
    torch.load(tmp_path / "run" / "checkpoint.pt", weights_only=True)  # the last good state
    finish(start(recipe, tmp_path / "run", "--resume", "--quiet"))


def test_a_damaged_checkpoint_is_refused_with_a_reason(tmp_path, single):
    recipe = load_tiny(write_recipe(tmp_path))
    run(recipe, tmp_path / "run")
    (tmp_path / "run" / "record.json").unlink()
    (tmp_path / "run" / "checkpoint.pt").write_bytes(b"not a checkpoint")
    with pytest.raises(MeadaError, match="checkpoint.pt is damaged or was edited: it must match its checksum"):
        run(recipe, tmp_path / "run", resume=True)
