"""Random streams: keyed by the image alone, and good enough to be taken for chance."""

from hashlib import blake2b

import numpy as np
import pytest
from scipy import stats

from meada.streams import sample_streams


def test_a_stream_depends_on_every_part_of_its_key() -> None:
    keys = [
        (seed, name, severity, index)
        for seed in (0, 1)
        for name in ("fog", "snow")
        for severity in (1, 2)
        for index in (0, 1, 2**40)
    ]
    words = np.concatenate([sample_streams(*key[:3], [key[3]]).words(50) for key in keys])
    assert len(np.unique(words)) == words.size


def test_lanes_share_no_word() -> None:
    rng = sample_streams(0, "fog", 1, np.arange(3))
    words = np.concatenate([rng.words(100, lane) for lane in range(3)])
    assert len(np.unique(words)) == words.size


def test_a_longer_draw_begins_like_a_shorter_one() -> None:
    rng = sample_streams(0, "fog", 1, [4])
    assert (rng.words(10)[0, :3] == rng.words(3)[0]).all()


def test_the_first_words_stay_what_they_are() -> None:
    """Files made by an earlier version can be made again: this number is the contract."""
    assert sample_streams(0, "gaussian_noise", 1, [0]).words(1)[0, 0] == 0x1C0C81DB10AE7232


def test_streams_of_a_name_are_splitmix_in_whole_numbers() -> None:
    """Python's own integers against arrays: start and twist of each stream, one after the other."""

    def mix(z: int, key: int) -> int:
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64 ^ key
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        return z ^ z >> 31

    rng = sample_streams(5, "fog", 2, [8, 3])
    a, b = np.frombuffer(blake2b(b"kernel", digest_size=16).digest(), dtype="<u8").tolist()
    for (start, twist), word in zip(rng.state.T.tolist(), rng.named("kernel").words(2)[:, 1].tolist(), strict=True):
        start, twist = mix((start + a) % 2**64, twist), mix((twist + b) % 2**64, start ^ a)
        assert word == mix((start + 0x9E3779B97F4A7C15) % 2**64, twist)


@pytest.mark.parametrize("byte", range(2))
def test_sixteen_bits_are_uniform(byte: int) -> None:
    draws = sample_streams(3, "a", 1, np.arange(200)).sixteen((40, 50))
    counts = np.bincount(((draws >> (8 * byte)) & 255).ravel(), minlength=256)
    assert stats.chisquare(counts).pvalue > 1e-4


def test_neighbours_in_a_stream_and_across_images_are_unrelated() -> None:
    u = sample_streams(0, "a", 1, np.arange(1000)).sixteen((400,)).astype(float)
    spread = 5 / np.sqrt(u.size)
    assert abs(np.corrcoef(u[:, :-1].ravel(), u[:, 1:].ravel())[0, 1]) < spread
    assert abs(np.corrcoef(u[:-1].ravel(), u[1:].ravel())[0, 1]) < spread


def test_every_bit_of_a_word_flips_when_the_index_changes_by_one() -> None:
    a = sample_streams(0, "a", 1, np.arange(4000)).words(1)[:, 0]
    flips = ((a[1:] ^ a[:-1])[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    assert np.abs(flips.mean(0) - 0.5).max() < 5 * 0.5 / np.sqrt(len(flips))


def test_normal_deviates_are_normal() -> None:
    z = sample_streams(0, "a", 1, np.arange(100)).normal((1000,)).ravel()
    assert stats.kstest(z, "norm").pvalue > 1e-3
    assert z.mean() == pytest.approx(0, abs=5 / np.sqrt(z.size))
    assert z.std() == pytest.approx(1, abs=5 / np.sqrt(2 * z.size))
    assert 4 < np.abs(z).max() < 4.33


def test_uniform_numbers_fill_their_interval() -> None:
    u = sample_streams(0, "a", 1, np.arange(5000)).uniform((4,), -45.0, 45.0)
    assert u.min() >= -45
    assert u.max() < 45
    assert stats.kstest(u.ravel(), stats.uniform(-45, 90).cdf).pvalue > 1e-3


def test_integers_stay_below_a_limit_for_each_image() -> None:
    limit = np.tile([1, 2, 7], 2000)
    drawn = sample_streams(0, "a", 1, np.arange(6000)).integers(limit)
    assert (drawn[limit == 1] == 0).all()
    assert set(drawn[limit == 2]) == {0, 1}
    assert stats.chisquare(np.bincount(drawn[limit == 7])).pvalue > 1e-4
