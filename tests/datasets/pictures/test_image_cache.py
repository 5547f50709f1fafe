"""Decoded once, mapped from disk, made again when a file changes, whole or not at all."""

import fcntl
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from meada.datasets.pictures import image_cache
from meada.datasets.pictures.decode import decode
from meada.datasets.pictures.image_cache import Listing, cache_root, load_images
from meada.errors import MeadaError
from meada.pool import Pool


@pytest.fixture
def listing(tmp_path: Path, rng: np.random.Generator) -> Listing:
    root = tmp_path / "pictures"
    root.mkdir()
    names = [f"{k}.png" for k in range(5)]
    for name in names:
        Image.fromarray(rng.integers(0, 256, (9, 7, 3), np.uint8)).save(root / name)
    return Listing("train", root, tuple(names))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def load(listing: Listing, home: Path) -> tuple[torch.Tensor, int]:
    """The pictures, and how many were decoded for it."""
    told: list[int] = []
    (images,) = load_images([listing], 4, folder=home, tell=lambda done, total: told.append(done))
    assert told == list(range(1, len(told) + 1))
    return images, len(told)


def test_rows_are_the_files_in_order_and_decoded_once(listing, home):
    images, decoded = load(listing, home)
    assert decoded == 5 and images.dtype == torch.uint8
    for row, name in enumerate(listing.files):
        assert np.array_equal(images[row].numpy(), decode(listing.root / name, 4))
    again, decoded = load(listing, home)
    assert decoded == 0 and torch.equal(images, again)


def test_it_stays_on_disk_and_a_pool_takes_it(listing, home):
    images, _ = load(listing, home)
    (path,) = home.iterdir()
    assert str(path) in Path("/proc/self/maps").read_text()  # the file itself, not a copy of it
    batch = Pool(images, torch.arange(5)).batch(torch.tensor([3, 0]))
    assert torch.equal(batch.x[0] * 255, images[3].to(batch.x.dtype))


@pytest.mark.parametrize("change", ["content", "time", "order", "another list"])
def test_another_picture_makes_it_anew_and_leaves_one_file(listing, home, change):
    load(listing, home)
    path = listing.root / listing.files[2]
    if change == "content":
        Image.new("RGB", (50, 50), "red").save(path)
    elif change == "time":
        os.utime(path, ns=(1, 1))
    elif change == "order":
        listing = Listing("train", listing.root, listing.files[::-1])
    else:
        listing = Listing("train", listing.root, listing.files[:2])
    images, decoded = load(listing, home)
    assert decoded == len(listing.files) == len(images)
    assert np.array_equal(images[1].numpy(), decode(listing.root / listing.files[1], 4))
    assert len([*home.iterdir()]) == 1


def test_other_parts_and_sizes_have_files_of_their_own(listing, home):
    load(listing, home)
    other = Listing("test", listing.root, listing.files)
    (small,) = load_images([other], 2, folder=home, tell=lambda done, total: None)
    assert small.shape == (5, 3, 2, 2) and len([*home.iterdir()]) == 2
    assert load(listing, home)[1] == 0


def test_all_faults_of_all_parts_are_named_at_once_and_nothing_is_left(listing, home):
    (listing.root / "1.png").write_bytes(b"no picture")
    Image.new("CMYK", (4, 4)).save(listing.root / "3.png", format="jpeg")
    (listing.root / "4.png").write_bytes(b"")
    parts = [
        Listing("a", listing.root, listing.files[:2]),
        Listing("b", listing.root, listing.files),
    ]
    with pytest.raises(MeadaError) as caught:
        load_images(parts, 4, folder=home, tell=lambda done, total: None, faults=["x is wrong"])
    text = str(caught.value)
    assert "has 4 faults: x is wrong; 1.png is not a readable picture" in text
    assert "3.png is CMYK" in text and "4.png" in text and "\n" not in text
    assert [*home.iterdir()] == []


def test_many_faults_are_counted(listing, home):
    for name in listing.files:
        (listing.root / name).write_bytes(b"no picture")
    with pytest.raises(MeadaError, match="7 faults: .*; and 2 more$"):
        load_images([listing], 4, folder=home, tell=print, faults=["x", "y"])


def test_an_interrupt_leaves_nothing_and_a_draft_of_the_past_is_swept(listing, home):
    home.mkdir()
    (home / ".killed.draft").write_text("")  # nobody holds a lock on it
    living = (home / ".living.draft").open("w")
    fcntl.flock(living, fcntl.LOCK_EX)

    def interrupt(done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load_images([listing], 4, folder=home, tell=interrupt)
    assert [p.name for p in home.iterdir()] == [".living.draft"]
    assert load(listing, home)[1] == 5
    living.close()


def test_a_full_disk_is_an_error_that_names_the_file(listing, home, monkeypatch):
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(image_cache.os, "pwrite", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*\.npy'"):
        load(listing, home)
    assert [*home.iterdir()] == []


def test_a_short_write_goes_on(listing, home, monkeypatch):
    whole, _ = load(listing, home / "a")
    pwrite = os.pwrite
    monkeypatch.setattr(image_cache.os, "pwrite", lambda f, data, at: pwrite(f, data[:7], at))
    assert torch.equal(load(listing, home / "b")[0], whole)


def test_a_damaged_cache_says_what_to_do(listing, home):
    load(listing, home)
    (path,) = home.iterdir()
    path.write_bytes(b"\x93NUMPY")
    with pytest.raises(MeadaError, match=r"\.npy cannot be read .* delete it"):
        load(listing, home)


def test_where_it_lies(monkeypatch, tmp_path):
    monkeypatch.delenv("MEADA_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_root() == tmp_path / ".cache" / "meada" / "images"
    monkeypatch.setenv("MEADA_CACHE", "/elsewhere")
    assert cache_root() == Path("/elsewhere") and cache_root("here") == Path("here")


def test_another_process_may_replace_the_file_while_the_next_part_is_read(listing, home, monkeypatch):
    """As two runs of one data set with other seeds do: they share the names of the parts."""
    others, true = Listing("validation", listing.root, listing.files[:2]), image_cache.build

    def meanwhile(path: Path, part: Listing, *rest, **more):
        faults = true(path, part, *rest, **more)
        if part is others:
            load_images([Listing("train", listing.root, listing.files[::-1])], 4, folder=home, tell=lambda *_: None)
        return faults

    monkeypatch.setattr(image_cache, "build", meanwhile)
    train, validation = load_images([listing, others], 4, folder=home, tell=lambda *_: None)
    assert torch.equal(train[:2], validation) and len(train) == 5
