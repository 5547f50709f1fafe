"""One flipped bit anywhere in a run's folder is refused with the file's name, or makes no difference."""

import json
import os
import random
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests_tiny import SEED, load_tiny, write_recipe

from meada.errors import MeadaError
from meada.evaluation.predictions import load_predictions
from meada.runs.network import load_model
from meada.runs.recipe import Recipe
from meada.runs.run import run
from meada.runs.run_folder import RunFolder, read_json

FINISHED, STOPPED = (int(n) for n in os.environ.get("MEADA_FLIPS", "150,50").split(","))  # a stopped run is resumed
UNREAD = {".lock", "position.json"}  # nothing is resumed from them


class Stop(Exception):
    pass


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    torch.set_default_dtype(torch.float32)
    path = write_recipe(tmp_path_factory.mktemp("recipe"), keep=True, checkpoint_seconds=0)
    return load_tiny(path, ["data.train=30", "data.test=10", "data.validation=10", "evaluation.crafted=2"])


@pytest.fixture(scope="module")
def finished(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_default_dtype(torch.float32)
    out = tmp_path_factory.mktemp("finished") / "run"
    run(recipe, out)
    return out


@pytest.fixture(scope="module")
def stopped(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cut off in the middle of the second round's maximisation."""

    def stop(phase: str, done: int, total: int) -> None:
        if phase == "round 2 of 2, maximise" and done >= 28:
            raise Stop

    torch.set_default_dtype(torch.float32)
    out = tmp_path_factory.mktemp("stopped") / "run"
    with pytest.raises(Stop):
        run(recipe, out, tell=stop)
    return out


def content_of(out: Path) -> tuple[Any, ...]:
    """What a run is judged by, without times."""
    record = read_json(out / "record.json")
    for line in record["rounds"]:
        line.pop("seconds")
    weights = {k: v.numpy().tobytes() for k, v in load_file(out / "model.safetensors").items()}
    log = [{k: v for k, v in line.items() if k != "seconds"} for line in RunFolder(out).read_log()]
    return weights, record["rounds"], record["results"], record["selected"], log


def read_all(out: Path, recipe: Recipe) -> tuple[Any, ...]:
    """Every file of a finished run, as the verbs read them."""
    folder, trust = RunFolder(out), [recipe.network["name"]]
    nets = [load_model(folder, 10, rule, trust).state_dict() for rule in ("last", "source_val", "crafted", "oracle")]
    told = load_predictions(folder.predictions)[0]
    in_order = lambda table: [table[key] for key in sorted(table)]  # a file's tensors come in any order
    values = [*(v for net in nets for v in net.values()), *in_order(folder.load_gallery())]
    values += [v for domains in in_order(told) for parts in in_order(domains) for v in in_order(parts)]
    return folder.load_recipe(trust), content_of(out), folder.load_record(), [v.numpy().tobytes() for v in values]


def flip(path: Path, rng: random.Random) -> str:
    content = bytearray(path.read_bytes())
    place, bit = rng.randrange(len(content)), rng.randrange(8)
    content[place] ^= 1 << bit
    path.write_bytes(content)
    return f"{path.name}, byte {place}, bit {bit}, seed {SEED}"


def files_of(out: Path) -> list[Path]:
    found = [p for p in sorted(out.rglob("*")) if p.is_file() and p.name not in UNREAD and p.stat().st_size]
    return [p.relative_to(out) for p in found]


def named(error: MeadaError, path: Path) -> bool:
    """The file itself, or for its checksums the file that they are of."""
    return path.stem.split(".")[0] in str(error) or "checksums.json" in str(error)


def test_a_finished_run_is_read_whole_or_not_at_all(finished, recipe, tmp_path, single):
    rng = random.Random(SEED)
    print("seed", SEED)
    whole, files = read_all(finished, recipe), [p for p in files_of(finished) if p.parts[0] != "pool"]
    files.remove(Path("checkpoint.pt"))  # nothing reads that of a finished run
    refused = 0
    for number in range(FINISHED):
        out, path = tmp_path / str(number), rng.choice(files)
        shutil.copytree(finished, out, ignore=shutil.ignore_patterns("pool", "checkpoint.pt"))
        where = flip(out / path, rng)
        try:
            assert read_all(out, recipe) == whole, where
        except MeadaError as error:
            assert named(error, path), (where, str(error))
            refused += 1
        shutil.rmtree(out)
    assert refused > 0.8 * FINISHED


def test_a_stopped_run_is_resumed_to_the_same_bits_or_not_at_all(finished, stopped, recipe, tmp_path, single):
    rng = random.Random(SEED + 1)
    print("seed", SEED)
    whole, files, fates = content_of(finished), files_of(stopped), {"refused": 0, "repaired": 0}
    assert {"checkpoint.pt", "log.jsonl", "recipe.toml", "gallery.safetensors"} <= {str(p) for p in files}
    for number in range(STOPPED):
        out, path = tmp_path / str(number), rng.choice(files)
        shutil.copytree(stopped, out)
        where = flip(out / path, rng)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                run(recipe, out, resume=True)
            assert content_of(out) == whole, where
            fates["repaired"] += 1
        except MeadaError as error:
            assert named(error, path), (where, str(error))
            fates["refused"] += 1
        shutil.rmtree(out)
    assert min(fates.values()) > 0, fates


@pytest.mark.parametrize("path", ["pool/round-2.json", "pool/round-2.npy", "log.jsonl"])
def test_what_can_be_made_again_is_repaired(finished, stopped, recipe, tmp_path, single, path):
    out = tmp_path / "run"
    shutil.copytree(stopped, out)
    content = bytearray((out / path).read_bytes())
    content[{"pool/round-2.npy": 200}.get(path, 12)] ^= 1  # in the first sample, in the note, in the first line
    (out / path).write_bytes(content)
    if path != "log.jsonl":
        with pytest.warns(UserWarning, match=rf"{Path(path).name} is damaged.* made again"):
            run(recipe, out, resume=True)
    else:
        run(recipe, out, resume=True)
    assert content_of(out) == content_of(finished)


@pytest.mark.parametrize("path", ["checkpoint.pt", "pool/round-1.npy", "pool/round-1.parents.npy", "recipe.toml"])
def test_what_cannot_is_refused_by_name(stopped, recipe, tmp_path, single, path):
    out = tmp_path / "run"
    shutil.copytree(stopped, out)
    content = bytearray((out / path).read_bytes())
    content[-9] ^= 4
    (out / path).write_bytes(content)
    with pytest.raises(MeadaError, match=rf"{path} is damaged"):
        run(recipe, out, resume=True)


TORN = ["pool/round-2.json", "pool/round-1.parents.npy", "pool/round-1.npy", "gallery.safetensors", "checkpoint.pt",
        "pool/round-2.seconds", "checksums.json"]  # fmt: skip


@pytest.mark.parametrize("path", TORN)
@pytest.mark.parametrize("damage", ["empty", "half", "garbage"])
def test_torn_files_are_a_sentence(stopped, finished, recipe, tmp_path, single, path, damage):
    out = tmp_path / "run"
    shutil.copytree(stopped, out)
    content = (out / path).read_bytes()
    (out / path).write_bytes({"empty": b"", "half": content[: len(content) // 2], "garbage": b"\x93x[/b]"}[damage])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run(recipe, out, resume=True)
        assert content_of(out) == content_of(finished)
    except MeadaError as error:
        assert named(error, Path(path)), error


def test_a_folder_without_checksums_is_read_with_a_warning(stopped, finished, recipe, tmp_path, single):
    out = tmp_path / "run"
    shutil.copytree(stopped, out)
    (out / "checksums.json").unlink()
    for sums in out.rglob("*.sums"):
        sums.unlink()
    lines = [json.loads(line) for line in (out / "log.jsonl").open()]
    (out / "log.jsonl").write_text(
        "".join(json.dumps({k: v for k, v in x.items() if k != "crc32"}) + "\n" for x in lines)
    )
    with pytest.warns(UserWarning, match="has no checksums.json"):
        run(recipe, out, resume=True)
    assert content_of(out) == content_of(finished)


def test_a_file_that_somebody_writes_through_meada_stays_known(finished, tmp_path):
    from meada.files import read_bytes, write_json

    out = tmp_path / "run"
    shutil.copytree(finished, out)
    write_json(out / "record.json", {"results": {}, "seed": 3})
    assert RunFolder(out).load_record()["seed"] == 3
    (out / "record.json").write_text('{"seed": 4}')
    with pytest.raises(MeadaError, match=r"record\.json is damaged or was edited"):
        read_bytes(out / "record.json")


def test_a_writer_that_is_killed_between_checksum_and_file_leaves_both_readable(finished, tmp_path, monkeypatch):
    import meada.files

    out = tmp_path / "run"
    shutil.copytree(finished, out)
    before, true = (out / "record.json").read_bytes(), meada.files._replace

    def killed(path: Path, content: bytes) -> None:
        if path.name == "record.json":
            raise Stop
        true(path, content)

    monkeypatch.setattr(meada.files, "_replace", killed)
    with pytest.raises(Stop):
        meada.files.write_text(out / "record.json", "{}")
    monkeypatch.undo()
    assert meada.files.read_bytes(out / "record.json") == before
    meada.files.write_text(out / "record.json", "{}")
    assert meada.files.read_bytes(out / "record.json") == b"{}"
