"""Data as people have it: each kind gives the same images and labels, and memory does not grow with them."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, SubsetRandomSampler, TensorDataset

from meada.datasets.examples import batches, pool_of
from meada.errors import MeadaError
from meada.pool.storage import DiskImages

X8 = torch.randint(256, (10, 3, 8, 8), dtype=torch.uint8)
Y = torch.arange(10) % 3


class Pictures(Dataset):
    """PIL images with labels, as torchvision's folders give them."""

    def __init__(self, mode="RGB", sizes=(8,)):
        self.mode, self.sizes = mode, sizes

    def __len__(self):
        return 10

    def __getitem__(self, i):
        side = self.sizes[i % len(self.sizes)]
        image = Image.fromarray(X8[i].permute(1, 2, 0).numpy()).resize((side, side), Image.Resampling.NEAREST)
        return image.convert(self.mode), int(Y[i])


class Stream(IterableDataset):
    def __iter__(self):
        return iter(zip(X8, Y, strict=True))


def hugging_face():
    datasets = pytest.importorskip("datasets", reason="Hugging Face's datasets is not installed")
    rows = {"image": [Image.fromarray(x.permute(1, 2, 0).numpy()) for x in X8], "label": Y.tolist()}
    return datasets.Dataset.from_dict(rows).cast_column("image", datasets.Image())


KINDS = {
    "tensors": lambda: (X8, Y),
    "arrays": lambda: (X8.numpy(), Y.numpy().astype(np.int32)),
    "Dataset": lambda: TensorDataset(X8, Y),
    "PIL images": Pictures,
    "Subset": lambda: Subset(TensorDataset(X8, Y), range(10)),
    "dicts": lambda: [{"pixel_values": x, "labels": y} for x, y in zip(X8, Y, strict=True)][:10],
    "Hugging Face": hugging_face,
    "Hugging Face as torch": lambda: hugging_face().with_format("torch"),
}
# Lists of pairs are read as data sets too, except those of two, which are (images, labels).


def joined(parts):
    x, y = zip(*parts, strict=True)
    return torch.cat(x), torch.cat(y)


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "dicts"])
def test_every_kind_is_streamed(kind):
    parts = list(batches(KINDS[kind](), 4))
    assert [len(y) for _, y in parts] == [4, 4, 2]
    x, y = joined(parts)
    assert torch.equal(x, X8) and torch.equal(y, Y)


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "dicts"])
def test_every_kind_becomes_a_pool(kind, tmp_path):
    pool = pool_of(KINDS[kind](), tmp_path)
    assert torch.equal(pool.held(torch.arange(10)), X8) and torch.equal(pool.labels, Y)
    assert isinstance(pool.blocks[0].images, DiskImages) == (kind not in ("tensors", "arrays"))


def test_a_loader_is_streamed_in_its_own_batches():
    parts = list(batches(DataLoader(TensorDataset(X8 / 255, Y), 3)))
    assert [len(y) for _, y in parts] == [3, 3, 3, 1] and torch.equal(joined(parts)[0], X8 / 255)


def test_of_a_loader_the_data_set_is_read_in_order_and_it_says_so(tmp_path):
    with pytest.warns(UserWarning, match="batch size and order are not used"):
        pool = pool_of(DataLoader(TensorDataset(X8, Y), 3, shuffle=True), tmp_path)
    assert torch.equal(pool.held(torch.arange(10)), X8)


def test_a_loaders_own_collate_is_used(tmp_path):
    def collate(items):
        return {"img": torch.stack([x for x, _ in items]).flip(-1), "target": torch.stack([y for _, y in items])}

    with pytest.warns(UserWarning):
        pool = pool_of(DataLoader(TensorDataset(X8, Y), 3, collate_fn=collate), tmp_path)
    assert torch.equal(pool.held(torch.arange(10)), X8.flip(-1))


def test_a_sampler_of_a_part_is_not_passed_over(tmp_path):
    loader = DataLoader(TensorDataset(X8, Y), 3, sampler=SubsetRandomSampler([0, 1]))
    with pytest.raises(MeadaError, match="SubsetRandomSampler"):
        pool_of(loader, tmp_path)


def test_a_stream_is_refused_by_name_for_training_and_read_for_scoring(tmp_path):
    with pytest.raises(MeadaError, match="IterableDataset"):
        pool_of(Stream(), tmp_path)
    with pytest.raises(MeadaError, match="IterableDataset"), pytest.warns(UserWarning):
        pool_of(DataLoader(Stream(), 4), tmp_path)
    assert torch.equal(joined(batches(Stream(), 4))[0], X8)


def test_a_folder_of_pictures(tmp_path, monkeypatch):
    monkeypatch.setenv("MEADA_CACHE", str(tmp_path / "cache"))
    for i, x in enumerate(X8):
        path = tmp_path / "data" / "abc"[int(Y[i])] / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(x.permute(1, 2, 0).numpy()).save(path)
    x, y = joined(batches(tmp_path / "data", 4, side=8))
    order = y.argsort(stable=True)
    assert torch.equal(x[order], X8[Y.argsort(stable=True)]) and torch.equal(y[order], Y.sort().values)
    assert len(pool_of(str(tmp_path / "data"), tmp_path, side=8)) == 10


def test_grey_pictures_have_one_channel():
    assert joined(batches(Pictures("L")))[0].shape == (10, 1, 8, 8)


def test_reading_leaves_the_callers_random_numbers_alone(tmp_path):
    before = torch.get_rng_state()
    pool_of(TensorDataset(X8, Y), tmp_path)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(
    "data, words",
    [
        (Pictures(sizes=(8, 6)), "one size"),
        ({"train": [1]}, "several by name"),
        (TensorDataset(X8[:0], Y[:0]), "at least one"),
        (TensorDataset(X8), "dict with both|without labels"),
        (TensorDataset((X8 - 127.0) / 50, Y), "with_normalisation"),
        (TensorDataset(X8.permute(0, 2, 3, 1), Y), r"\(N, H, W, C\)"),
        (TensorDataset(X8[:, 0], Y), "grey"),
        (TensorDataset(X8, torch.eye(3)[Y]), "one-hot"),
        (7, "got int"),
        ((X8, Y, Y), "tuple of 3"),
        ([{"a": 1}] * 3, "keys pixel_values"),
        ([("x", 1)] * 3, "PIL images, got str"),
        ([(X8[0], "cat")] * 3, "got the text 'cat'"),
        ("/no/such/folder", "/no/such/folder"),
    ],
)
def test_what_cannot_be_used_is_named(data, words, tmp_path):
    if isinstance(data, list):
        data = Listed(data)
    with pytest.raises(MeadaError, match=words):
        pool_of(data, tmp_path)


class Listed(Dataset):
    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def test_dicts_of_a_data_set():
    assert torch.equal(joined(batches(Listed(KINDS["dicts"]())))[0], X8)


PEAK = """
import sys, threading, time, torch
import meada
from torch.utils.data import DataLoader, Dataset

seen = []

def own():  # memory of the process's own, in kB; pages of the file on disk come and go as the system likes
    return int(open("/proc/self/status").read().split("RssAnon:")[1].split()[0])

def watch():
    while True:
        seen.append(own())
        time.sleep(0.01)

def peak():
    highest = max([*seen, own()])
    seen.clear()
    return highest

class Lazy(Dataset):
    def __len__(self): return int(sys.argv[1])
    def __getitem__(self, i): return torch.full((3, 40, 40), i % 256, dtype=torch.uint8), i % 4

net = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten(), torch.nn.Linear(12, 4))
many = torch.nn.Sequential(torch.nn.AvgPool2d(20), torch.nn.Flatten(), torch.nn.Linear(12, 1000))
threading.Thread(target=watch, daemon=True).start()
meada.evaluate(net, {"a": DataLoader(Lazy(), 100)})
print(peak())
meada.evaluate(many, {"a": Lazy()})
print(peak())
plan = meada.Plan(rounds=0, min_steps=0, total_steps=5, batch_size=8)
meada.fit(net, Lazy(), "erm", plan=plan)
print(peak())
"""
MB = 30  # 50,000 times five numbers, and pieces that the allocator keeps


def test_memory_is_flat_at_50_000_pictures():
    """They are 240 MB, as floats four times as many, and the logits of 1,000 classes are 200 MB."""
    few, many = (
        [
            int(line) / 1024
            for line in subprocess.run(
                [sys.executable, "-c", PEAK, n], capture_output=True, text=True, check=True
            ).stdout.split()
        ]
        for n in ("500", "50000")
    )
    grown = dict(zip(("loader", "1,000 classes", "fit"), (b - a for a, b in zip(few, many, strict=True)), strict=True))
    assert max(grown.values()) < MB, f"MB more: {grown}"
