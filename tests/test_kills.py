"""Commands that are killed at random moments and given again end as if nothing had happened."""

import hashlib
import json
import os
import random
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from PIL import Image
from safetensors.torch import load_file
from tests_kills import Ended, Server
from tests_tiny import SEED, network_of, write_recipe

from meada.runs.run_folder import RunFolder

KILLS = int(os.environ.get("MEADA_KILLS", 4))  # of each command
TIMES = ("seconds", "prepared", "costs")  # keys that differ from run to run


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


def without_times(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: without_times(value) for key, value in content.items() if key not in TIMES}
    return [without_times(value) for value in content] if isinstance(content, list) else content


def of_run(out: Path) -> tuple[Any, ...]:
    weights = {k: v.numpy().tobytes() for k, v in load_file(out / "model.safetensors").items()}
    log = [without_times(line) for line in RunFolder(out).read_log()]
    return weights, without_times(json.loads((out / "record.json").read_text())), log


def of_set(out: Path) -> dict[str, tuple[Any, ...]]:
    return {path.parent.name: of_run(path.parent) for path in out.glob("*/record.json")}


def of_robustify(out: Path) -> tuple[Any, ...]:
    outcome = json.loads((out / "outcome.json").read_text())
    kept = {key: without_times(outcome[key]) for key in ("delivered", "candidates", "differences", "stages", "plan")}
    return kept, (out / "model.safetensors").read_bytes()


def of_files(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}


def drafts(out: Path) -> list[str]:
    hidden = [path.name for path in out.rglob(".*") if path.name != ".lock"]
    return hidden + [path.name for path in out.rglob("*") if path.suffix in (".draft", ".part", ".partial")]


def survives(
    give: Callable[..., Ended], whole: Path, killed: Path, result: Callable[[Path], Any], *, kills: int = KILLS
) -> None:
    """Give a command again and again, killed before a random change or after random seconds, then once to its end."""
    rng, told = random.Random(f"{SEED} {give.args[0]}"), f"MEADA_SEED={SEED}"  # type: ignore[attr-defined]
    print(told)
    done = give(whole)
    assert done.code == 0 and done.changes, (done, told)
    for number in range(kills):
        by_clock = number % 2 and done.seconds
        moment = {"seconds": rng.uniform(0, done.seconds)} if by_clock else {"change": rng.randint(1, done.changes)}
        end = give(killed, **moment)
        assert end.code in (0, -9, -27), (end, moment, told)
    end = give(killed)
    assert end.code == 0, (end, told)
    assert result(killed) == result(whole), told
    assert not drafts(killed), (drafts(killed), told)


SMALL = ("data.train=30", "data.validation=10", "data.test=10", "plan.rounds=1", "plan.min_steps=3",
         "plan.total_steps=6", "plan.batch_size=10", "evaluation.every=3", "evaluation.subset=10",
         "evaluation.crafted=2", "checkpoint_seconds=0")  # fmt: skip


def changed(*settings: str) -> list[str]:
    return [word for setting in settings for word in ("--set", setting)]


def test_train(server, tmp_path):
    recipe = write_recipe(tmp_path, settings="steps = 2\nstep_size = 1.0\nblock = 6")

    def give(name: str, out: Path, **how: Any) -> Ended:
        resume = ["--resume"] if (out / "recipe.toml").exists() else []
        words = [name, str(recipe), "--out", str(out), "--quiet", "--network", network_of(recipe), *changed(*SMALL)]
        return server.run([*words, *resume], out, **how)

    survives(partial(give, "train"), tmp_path / "whole", tmp_path / "killed", of_run)


def test_a_run_that_is_stopped_and_continued_is_the_same(server, tmp_path):
    recipe = write_recipe(tmp_path, settings="steps = 2\nstep_size = 1.0\nblock = 6")
    words = ["train", str(recipe), "--quiet", "--network", network_of(recipe), *changed(*SMALL), "--out"]
    whole, out = tmp_path / "whole", tmp_path / "stopped"
    moment = random.Random(SEED).randint(1, server.run([*words, str(whole)], whole).changes)
    end = server.run([*words, str(out)], out, change=moment, stop=True)
    assert end.code == 0, (end, moment, SEED)
    assert of_run(out) == of_run(whole), (moment, SEED)


@pytest.fixture
def read_only() -> Iterator[Path]:
    """Not below ``tmp_path``, which others may not enter."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        for path in (folder, *folder.rglob("*")):
            if path.is_dir():
                path.chmod(0o755)


def test_folders_that_cannot_be_written_are_a_sentence_and_can_be_read(server, tmp_path, read_only):
    recipe = write_recipe(read_only, settings="steps = 2\nstep_size = 1.0\nblock = 6")
    train = ["train", str(recipe), "--quiet", "--network", network_of(recipe), *changed(*SMALL), "--out"]
    run = read_only / "run"
    assert server.run([*train, str(run)], run).code == 0
    Image.fromarray(np.zeros((32, 32, 3), np.uint8)).save(read_only / "p.png")
    np.save(read_only / "images.npy", np.zeros((4, 32, 32, 3), np.uint8))
    np.save(read_only / "labels.npy", np.arange(4))
    for path in (*read_only.rglob("*"), read_only):
        path.chmod(0o555 if path.is_dir() else 0o444)
    new, trust = str(read_only / "new"), ["--network", network_of(recipe)]
    refused = {
        "train": [*train, new],
        "resume": [*train, str(run), "--resume"],
        "evaluate": ["evaluate", str(run), "--pgd", "2", *trust],
        "predict": ["predict", str(run), str(read_only / "p.png"), "--csv", new, *trust],
        "sweep": ["sweep", str(recipe), "--out", new, "--grid", "lr=0.1", *trust],
        "corrupt": ["corrupt", str(read_only / "images.npy"), "--out", new, "--corruptions", "fog", "--quiet"],
        "data": ["data", "get", "usps", "--root", new],
    }
    for name, words in refused.items():
        end = server.run(words, read_only, unprivileged=True)
        last = end.said.strip().splitlines()[-1]
        assert end.code == 2 and last.startswith("meada: ") and "Permission denied" in last, (name, end)
        assert str(read_only) in last and "Traceback" not in end.said, (name, end)
    read = [["evaluate", str(run), *trust], ["predict", str(run), str(read_only / "p.png"), *trust]]
    for words in read:
        assert server.run(words, read_only, unprivileged=True).code == 0, words


def test_reproduce_with_two_workers(server, tmp_path):
    """Killed together with its runs, at a moment of one of them."""
    network = f"network.name={network_of(write_recipe(tmp_path))}"
    settings = changed("data.name=embedded", 'data.targets=["noisy"]', *SMALL, network)

    def give(name: str, out: Path, **how: Any) -> Ended:
        words = [name, "digits", "--methods", "erm", "--seeds", "2", "--jobs", "2", "--out", str(out), *settings]
        end = server.run(words, out, of_run=bool(how), **how)
        return replace(end, changes=80, seconds=0)  # about those of one of its runs; the clock is another process's

    survives(partial(give, "reproduce"), tmp_path / "whole", tmp_path / "killed", of_set, kills=KILLS // 2)
    assert len(of_set(tmp_path / "whole")) == 2


def test_robustify(server, tmp_path):
    rng = np.random.default_rng(5)
    for place, name in enumerate(("green", "red")):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(12):
            pixels = rng.integers(0, 100, (36, 36, 3), np.uint8)
            pixels[..., place] += 120
            Image.fromarray(pixels).save(tmp_path / "photos" / name / f"{number}.png")
    network = network_of(write_recipe(tmp_path))

    def give(name: str, out: Path, **how: Any) -> Ended:
        words = [name, "--data", str(tmp_path / "photos"), "--out", str(out), "--network", network, "--side", "32"]
        settings = ("steps=6", "trial_steps=1", "shifted=4", "severities=[3]", "rates=[0.01]", "batch_size=8")
        return server.run([*words, "--quiet", *changed(*settings)], out, **how)

    survives(partial(give, "robustify"), tmp_path / "whole", tmp_path / "killed", of_robustify, kills=KILLS // 2)


def test_corrupt(server, tmp_path):
    rng = np.random.default_rng(5)
    np.save(tmp_path / "images.npy", rng.integers(0, 256, (30, 32, 32, 3), np.uint8))
    np.save(tmp_path / "labels.npy", np.arange(30) % 10)

    def give(name: str, out: Path, **how: Any) -> Ended:
        chosen = ["--corruptions", "fog,contrast,gaussian_noise", "--severity", "1,3", "--workers", "1", "--quiet"]
        return server.run([name, str(tmp_path / "images.npy"), "--out", str(out), *chosen], out, **how)

    survives(partial(give, "corrupt"), tmp_path / "whole", tmp_path / "killed", of_files)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


def test_data_get(server, tmp_path):
    content = random.Random(5).randbytes(8_000_000)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "usps.t.bz2").write_bytes(content)
    site = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "site")))
    site.handle_error = lambda *request: None  # type: ignore[method-assign]  # a killed client hangs up
    thread = Thread(target=site.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    url = f"http://127.0.0.1:{site.server_port}/usps.t.bz2"
    file = ["usps/usps.t.bz2", len(content), hashlib.md5(content).hexdigest(), url]
    try:
        give = lambda name, out, **how: server.run([name, "get", "usps", "--root", str(out)], out, file=file, **how)
        survives(partial(give, "data"), tmp_path / "whole", tmp_path / "killed", of_files)
    finally:
        site.shutdown()
        thread.join()
        site.server_close()
