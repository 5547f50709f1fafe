"""Folders of strangers and of other processes: links, pipes, locks, drafts, and memory that is not there."""

import fcntl
import os
import resource
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from tests_tiny import load_tiny, write_recipe

from meada import files
from meada.errors import MeadaError
from meada.files import read_bytes, remove_drafts, write_text
from meada.pool import Pool
from meada.pool.storage import BlockFile
from meada.runs import run_folder
from meada.runs.run_folder import RunFolder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Somebody's own files, which a link in a folder may lead to."""
    home = tmp_path / "home"
    home.mkdir()
    for name in (".bashrc", ".bashrc.original", ".record.json.abcdefgh", "mine.safetensors"):
        (home / name).write_text("precious")
    return home


def kept(home: Path) -> bool:
    return len(list(home.iterdir())) == 4 and all(path.read_text() == "precious" for path in home.iterdir())


def test_a_lock_that_is_a_link_is_not_followed(tmp_path, home):
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    (folder.path / ".lock").symlink_to(home / ".bashrc")
    with pytest.raises(OSError, match=r"run/\.lock"), folder.lock():
        pass
    assert kept(home)


def test_what_lies_behind_a_link_is_no_draft_and_other_hidden_files_are_none(tmp_path, home):
    run = tmp_path / "run"
    run.mkdir()
    (run / "elsewhere").symlink_to(home)
    for name in (".bashrc.original", ".record.json.abcdefgh", "..processes.abcdefgh", ".hard.checkpoint.a_8_xxxx"):
        (run / name).write_text("")
    remove_drafts(run)
    assert kept(home) and sorted(path.name for path in run.iterdir()) == [".bashrc.original", "elsewhere"]


def test_candidates_behind_a_link_are_not_swept(tmp_path, home, single):
    recipe = load_tiny(write_recipe(tmp_path))
    folder = RunFolder(tmp_path / "run")
    folder.begin(recipe)
    (folder.path / "candidates").symlink_to(home)
    with pytest.raises(MeadaError, match="candidates must be a folder, got a link"):
        folder.resume(recipe)
    assert kept(home)


def test_a_block_that_is_a_link_is_replaced_and_not_written_through(tmp_path):
    path, shape = tmp_path / "pool" / "round-1.npy", (6, 3, 4, 4)
    BlockFile(path, shape, torch.uint8, "x").write(torch.ones(3, 3, 4, 4, dtype=torch.uint8), 0)
    path.with_suffix(".sums").unlink()  # as a version without checksums left it
    target = path.rename(tmp_path / "theirs.npy")
    path.symlink_to(target)
    before = target.read_bytes()
    block = BlockFile(path, shape, torch.uint8, "x")
    block.write(torch.full(shape, 7, dtype=torch.uint8), 0)
    assert block.there.sum() == 6 and not path.is_symlink() and target.read_bytes() == before


def pipe(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(files.MAX_FILE_BYTES + 1)  # holes: it takes no room


READERS: dict[str, Callable[[RunFolder], object]] = {
    "record.json": RunFolder.load_record,
    "recipe.toml": RunFolder.load_recipe,
    "log.jsonl": RunFolder.read_log,
    "gallery.safetensors": RunFolder.load_gallery,
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("make", [pipe, endless, huge])
def test_pipes_devices_and_huge_files_of_a_run_are_refused(tmp_path, name, make):
    make(tmp_path / name)
    with pytest.raises(MeadaError, match=f"{name} must (be a file, got a|have at most)"):
        READERS[name](RunFolder(tmp_path))


@pytest.mark.parametrize("make", [pipe, endless])
def test_a_lock_or_a_position_that_is_no_file_tells_nothing(tmp_path, make):
    make(tmp_path / ".lock")
    make(tmp_path / "position.json")
    folder = RunFolder(tmp_path)
    assert not folder.locked and folder.load_position() is None


def test_who_looks_at_a_lock_does_not_take_it_away_from_a_run(tmp_path, monkeypatch):
    """Two sweeps on one folder: one looks whether a run is at work just when the other begins it."""
    (tmp_path / ".lock").touch()
    looker = open(tmp_path / ".lock", "rb")  # noqa: SIM115 - closed while the run waits
    fcntl.flock(looker, fcntl.LOCK_EX)
    monkeypatch.setattr(run_folder.time, "sleep", lambda seconds: looker.close() if seconds else None)
    folder = RunFolder(tmp_path)
    with folder.lock():
        assert folder.locked
    assert not folder.locked


def test_a_draft_that_another_process_removed_is_written_again(tmp_path, monkeypatch):
    """Between its making and its lock, whoever starts takes it for a killed process's."""
    true, removed = fcntl.flock, []

    def flock(file: object, how: int) -> None:
        if not removed:
            removed.extend(tmp_path.iterdir())
            removed[0].unlink()
        true(file, how)  # type: ignore[arg-type]

    monkeypatch.setattr(files.fcntl, "flock", flock)
    write_text(tmp_path / "a.json", "{}")
    assert removed and read_bytes(tmp_path / "a.json") == b"{}" and len(list(tmp_path.iterdir())) == 1


def grown(folder: Path, room: int) -> str:
    """A pool of 200,000 images whose second half is on disk, in a process with ``room`` more bytes of addresses."""
    images = torch.zeros(100_000, 3, 8, 8, dtype=torch.uint8)
    pool = Pool(images, torch.zeros(100_000, dtype=torch.long), folder=folder, memory=0)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + room, resource.RLIM_INFINITY))
    try:
        growth = pool.grow(torch.arange(100_000))
        for start in range(0, 100_000, 5_000):
            growth.write(torch.full((5_000, 3, 8, 8), 0.5), at=start)
        growth.close()
    except MeadaError as error:
        return str(error)
    batch = pool.images(torch.tensor([3, 199_999]))
    return f"{len(pool)} {float(batch[0].max())} {float(batch[1].min())}"


@pytest.mark.parametrize("room, sentence", [(400 << 20, "200000 0.0 0.5"), (48 << 20, "not enough memory to map")])
def test_a_pool_under_a_limit_of_addresses_fits_or_says_so(tmp_path, single, room, sentence):
    """The block on disk is 77 MB, and is mapped whole."""
    told = tmp_path / "told"
    if not (pid := os.fork()):
        try:
            told.write_text(grown(tmp_path / "pool", room))
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    assert told.read_text().startswith(sentence)


def test_an_array_that_is_mapped_has_its_room_on_disk(tmp_path, monkeypatch):
    """Through a mapping, a full disk would kill the process."""
    from meada.corruptions.sources import open_source
    from meada.corruptions.write import Settings, write

    np.save(tmp_path / "images.npy", np.zeros((4, 32, 32, 3), np.uint8))
    np.save(tmp_path / "labels.npy", np.arange(4))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    source = open_source(str(tmp_path / "images.npy"), None, None, {})
    with pytest.raises(OSError, match=r"No space left on device: '.*fog\.npy"):
        write(source, tmp_path / "out", Settings(("fog",), (1,)))
    assert not [path for path in (tmp_path / "out").rglob("*") if "fog" in path.name or path.name.startswith(".")]
