"""The growing set D: blocks by round, in memory or on disk, each sample with its descent."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from meada.errors import MeadaError
from meada.machine.distributed import World
from meada.pool import Pool, block_path
from meada.pool.storage import BlockFile, DiskImages


def source(n: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.rand(n, 3, 4, 4), torch.arange(n) % 3


def test_blocks_are_kept_by_round_and_the_source_is_never_altered():
    images, labels = source()
    pool = Pool(images, labels, domains=torch.tensor([0, 0, 1, 1, 2]))
    pool.append(1 - images, parents=torch.arange(5))
    pool.append(images[:2] / 2, parents=torch.tensor([7, 0]))
    assert [len(b.labels) for b in pool.blocks] == [5, 5, 2]
    assert torch.equal(pool.blocks[0].images, images)
    assert pool.sources.tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 2, 0]
    assert pool.domains.tolist()[-2:] == [1, 0]
    assert pool.labels.tolist()[-2:] == [2, 0]


def test_a_batch_crosses_blocks_in_the_order_asked_for():
    images, labels = source()
    pool = Pool(images, labels)
    pool.append(1 - images, parents=torch.arange(5))
    index = torch.tensor([9, 0, 5, 4])
    want = torch.cat([images, 1 - images])[index].float().double()
    x, y, *_ = pool.batch(index)
    assert_close(x, want, rtol=0, atol=1e-7)
    assert y.tolist() == [labels[i % 5] for i in index]


@pytest.mark.parametrize("memory", [1 << 30, 0], ids=["in memory", "on disk"])
def test_eight_bits_are_rounded(tmp_path, memory):
    images, labels = torch.rand(5, 3, 4, 4), torch.zeros(5).long()
    pool = Pool(images, labels, store="uint8", folder=tmp_path, memory=memory)
    pool.append(images, parents=torch.arange(5))
    held = pool.blocks[1].images
    assert held.dtype == torch.uint8 and isinstance(held, DiskImages) == (memory == 0)
    assert_close(pool.images(torch.arange(5, 10)), (images * 255).round() / 255)


def test_eight_bit_sources_come_out_as_floats():
    images = torch.arange(256, dtype=torch.uint8).reshape(1, 1, 16, 16)
    pool = Pool(images, torch.tensor([0]))
    assert_close(pool.images(torch.tensor([0])).flatten(), torch.arange(256.0) / 255)


@pytest.mark.parametrize("folder", [True, False])
def test_above_its_memory_a_block_stays_on_disk_and_reads_the_same(tmp_path, folder):
    images, labels = source(6)
    kept = Pool(images, labels)
    spilt = Pool(images, labels, folder=tmp_path if folder else None, memory=100)
    for pool in (kept, spilt):
        pool.append(images.flip(0), parents=torch.arange(6))
    index = torch.randperm(12)
    assert isinstance(spilt.blocks[1].images, DiskImages)
    assert torch.equal(kept.images(index), spilt.images(index))


def test_a_block_half_written_is_carried_on(tmp_path):
    images, labels = source(6)
    first = Pool(images, labels, folder=tmp_path)
    growth = first.grow(torch.arange(6), origin="step 7")
    growth.write(images[:4])  # and here the process dies
    again = Pool(images, labels, folder=tmp_path).grow(torch.arange(6), origin="step 7")
    assert again.done == 4
    again.write(images[4:])
    again.close()
    assert_close(again.pool.images(torch.arange(6, 12)), images)
    other = Pool(images, labels, folder=tmp_path).grow(torch.arange(6), origin="step 8")
    assert other.done == 0


def test_finished_blocks_are_adopted(tmp_path):
    images, labels = source(6)
    one = Pool(images, labels, folder=tmp_path)
    one.append(images.flip(0), parents=torch.arange(6))
    one.append(images[:3], parents=torch.tensor([11, 2, 6]))
    two = Pool(images, labels, folder=tmp_path)
    two.adopt(2)
    assert torch.equal(one.images(torch.arange(15)), two.images(torch.arange(15)))
    assert torch.equal(one.sources, two.sources) and torch.equal(one.labels, two.labels)
    block_path(tmp_path, 2).write_bytes(b"nonsense")
    with pytest.raises(MeadaError, match="round-2.npy.*cannot be read"):
        Pool(images, labels, folder=tmp_path).adopt(2)
    block_path(tmp_path, 1).unlink()
    with pytest.raises(MeadaError, match="round-1.npy.*missing"):
        Pool(images, labels, folder=tmp_path).adopt(2)


def test_blocks_are_plain_numpy_files(tmp_path):
    images, labels = source(6)
    pool = Pool(images.float(), labels, folder=tmp_path)
    pool.append(images.float(), parents=torch.arange(6))
    assert np.array_equal(np.load(block_path(tmp_path, 1)), images.float().numpy())


def test_a_block_must_be_whole():
    growth = Pool(*source()).grow(torch.arange(5))
    growth.write(torch.rand(2, 3, 4, 4))
    with pytest.raises(ValueError, match="2 of 5"):
        growth.close()


@pytest.mark.parametrize(
    "images, labels, sentence",
    [
        (torch.rand(2, 4, 4), torch.zeros(2).long(), r"\(N, C, H, W\)"),
        (torch.rand(2, 3, 4, 4), torch.zeros(3).long(), "2 images and 3 labels"),
        (torch.rand(0, 3, 4, 4), torch.zeros(0).long(), "at least one labelled image"),
        (2 * torch.ones(2, 3, 4, 4), torch.zeros(2).long(), "got values from 2 to 2"),
        (torch.zeros(2, 3, 4, 4).int(), torch.zeros(2).long(), "int32"),
    ],
)
def test_bad_sources_are_refused(images, labels, sentence):
    with pytest.raises(MeadaError, match=sentence):
        Pool(images, labels)


def test_what_each_process_wrote_before_a_kill_is_there_for_the_next(tmp_path):
    class Apart(World):
        """A second process, as far as files go."""

        def barrier(self):
            pass

        def all_reduce_min(self, values):
            return values

    make = lambda world: BlockFile(tmp_path / "round-1.npy", (10, 1, 2, 2), torch.float32, "the same", world)
    first, second = make(World()), make(Apart(1, 2, 1))
    first.write(torch.zeros(3, 1, 2, 2, dtype=torch.float32), 0)
    second.write(torch.ones(4, 1, 2, 2, dtype=torch.float32), 5)
    assert make(World()).there.tolist() == [1, 1, 1, 0, 0, 1, 1, 1, 1, 0]
