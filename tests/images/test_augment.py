"""Flip and crop, against images taken one by one."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from meada.errors import MeadaError
from meada.images.augment import _cut, _cut_by_index, flip_and_crop, mirror_and_cut


def one_by_one(images, mirrored, top, left, padding):
    """Mirror, paste onto black, cut: as one would by hand."""
    out = []
    for x, m, t, s in zip(images, mirrored, top.tolist(), left.tolist(), strict=True):
        c, h, w = x.shape
        board = torch.zeros(c, h + 2 * padding, w + 2 * padding, dtype=x.dtype)
        board[:, padding : padding + h, padding : padding + w] = x.flip(-1) if m else x
        out.append(board[:, t : t + h, s : s + w])
    return torch.stack(out)


@settings(max_examples=40)
@given(
    n=st.integers(1, 7),
    shape=st.tuples(st.integers(1, 3), st.integers(1, 9), st.integers(1, 9)),
    padding=st.integers(0, 5),
    dtype=st.sampled_from([torch.uint8, torch.float32, torch.float64]),
    seed=st.integers(0, 9),
)
def test_equals_the_images_taken_one_by_one(n, shape, padding, dtype, seed):
    g = torch.Generator().manual_seed(seed)
    images = torch.randint(1, 256, (n, *shape), generator=g).to(dtype)
    top, left = torch.randint(2 * padding + 1, (2, n), generator=g)
    mirrored = torch.randint(2, (n,), generator=g).bool()
    got = mirror_and_cut(images, mirrored, top, left, padding)
    assert got.dtype == dtype
    assert torch.equal(got, one_by_one(images, mirrored, top, left, padding))


def test_an_image_cut_by_hand():
    x = torch.arange(1, 7, dtype=torch.uint8).view(1, 1, 2, 3)  # 1 2 3 / 4 5 6
    corner = torch.tensor([0])
    got = mirror_and_cut(x, torch.tensor([True]), corner, corner, 1)
    assert got.tolist() == [[[[0, 0, 0], [0, 3, 2]]]]


def test_both_ways_of_cutting_agree():
    padded = torch.randint(256, (5, 3, 10, 12), dtype=torch.uint8)
    top, left = torch.randint(3, (5,)), torch.randint(5, (5,))
    shape = torch.Size((5, 3, 8, 8))
    assert torch.equal(_cut(padded, top, left, shape), _cut_by_index(padded, top, left, shape))


def test_every_place_and_both_sides_come_up_equally_often():
    """An image with one lit pixel tells where it was cut and whether it was mirrored."""
    n, padding = 18_000, 1
    x = torch.zeros(n, 1, 4, 4, dtype=torch.uint8)
    x[:, 0, 1, 1] = 1  # columns 0..2 as it is, 1..3 mirrored; never cut off
    out = flip_and_crop(x, torch.Generator().manual_seed(0), padding)
    assert out.sum() == n
    rows, columns = out.sum((0, 1, 3)) / n, out.sum((0, 1, 2)) / n
    third = 1 / 3
    assert rows.tolist() == pytest.approx([third, third, third, 0], abs=0.02)
    assert columns.tolist() == pytest.approx([third / 2, third, third, third / 2], abs=0.02)


def test_the_generator_says_what_is_drawn():
    x = torch.randint(256, (32, 3, 8, 8), dtype=torch.uint8)
    before = x.clone()
    one, two, other = (flip_and_crop(x, torch.Generator().manual_seed(s)) for s in (1, 1, 2))
    assert torch.equal(one, two) and not torch.equal(one, other)
    assert torch.equal(x, before)


def test_no_padding_only_mirrors():
    x = torch.randint(256, (64, 3, 8, 8), dtype=torch.uint8)
    out = flip_and_crop(x, torch.Generator().manual_seed(0), padding=0)
    same, other = (out == x).flatten(1).all(1), (out == x.flip(-1)).flatten(1).all(1)
    assert (same ^ other).all() and same.any() and other.any()


def test_bad_input_is_refused():
    x = torch.zeros(2, 3, 8, 8, dtype=torch.uint8)
    with pytest.raises(MeadaError, match="padding must be 0 or more pixels, got -1"):
        mirror_and_cut(x, torch.zeros(2).bool(), torch.zeros(2).long(), torch.zeros(2).long(), -1)
    with pytest.raises(MeadaError, match=r"\(N, C, H, W\)"):
        flip_and_crop(x[0], torch.Generator())


def test_an_empty_batch_stays_empty():
    x = torch.zeros(0, 3, 8, 8, dtype=torch.uint8)
    assert flip_and_crop(x, torch.Generator()).shape == x.shape
