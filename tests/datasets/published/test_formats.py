"""Each published format: a small file comes out as it went in, a damaged one with its fault."""

import bz2
import gzip
import struct
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.io
from PIL import Image

from meada.datasets.published.formats import (
    read_idx_images,
    read_libsvm,
    read_matlab,
    read_png_list,
    read_pngs,
    read_svhn,
    with_idx_labels,
)
from meada.errors import MeadaError

Rng = np.random.Generator


def test_idx_gives_back_the_bytes_and_the_labels(tmp_path: Path, make: SimpleNamespace, rng: Rng):
    images = rng.integers(0, 256, (3, 28, 28), dtype=np.uint8)
    pixels = read_idx_images(make.idx(tmp_path / "i.gz", images))
    raw = with_idx_labels(pixels, make.idx(tmp_path / "l.gz", np.array([5, 0, 9], np.uint8)))
    assert np.array_equal(raw.images, images)
    assert raw.labels.tolist() == [5, 0, 9]


IDX_FAULTS = {
    "cut off": lambda whole: whole[: len(whole) // 2],
    "not a whole gzip": lambda whole: gzip.decompress(whole),
    "must begin with 00000803, got 00000801": lambda whole: gzip.compress(b"\0\0\x08\x01" + bytes(12)),
    "must have a header of 16 bytes, got 7": lambda whole: gzip.compress(b"\0\0\x08\x03" + bytes(3)),
    "must hold 784 bytes of data, as its header says, got 783": lambda whole: gzip.compress(
        gzip.decompress(whole)[:-1]
    ),
    "must hold 784 bytes of data, as its header says, got 785": lambda whole: gzip.compress(
        gzip.decompress(whole) + b"\0"
    ),
}


@pytest.mark.parametrize("said", IDX_FAULTS)
def test_a_damaged_idx_file_is_refused(tmp_path: Path, make: SimpleNamespace, rng: Rng, said: str):
    path = make.idx(tmp_path / "i.gz", rng.integers(0, 256, (1, 28, 28), dtype=np.uint8))
    path.write_bytes(IDX_FAULTS[said](path.read_bytes()))
    with pytest.raises(MeadaError, match=said) as caught:
        read_idx_images(path)
    assert str(path) in str(caught.value)


def test_a_flipped_bit_fails_the_checksum_inside_gzip(tmp_path: Path, make: SimpleNamespace, rng: Rng):
    path = make.idx(tmp_path / "i.gz", rng.integers(0, 256, (2, 28, 28), dtype=np.uint8))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(MeadaError, match="not a whole gzip"):
        read_idx_images(path)


def test_idx_images_of_another_size_are_misshapen(tmp_path: Path, make: SimpleNamespace):
    path = make.idx(tmp_path / "i.gz", np.zeros((2, 28, 27), np.uint8))
    with pytest.raises(MeadaError, match="28x28 pixels, got 28x27"):
        read_idx_images(path)


def test_idx_labels_must_match_the_images(tmp_path: Path, make: SimpleNamespace):
    images = np.zeros((3, 28, 28), np.uint8)
    with pytest.raises(MeadaError, match="2 labels for 3 images"):
        with_idx_labels(images, make.idx(tmp_path / "l.gz", np.zeros(2, np.uint8)))
    with pytest.raises(MeadaError, match="must have labels from 0 to 9, got the label 10"):
        with_idx_labels(images, make.idx(tmp_path / "l.gz", np.array([1, 10, 2], np.uint8)))


def test_mat_turns_columns_last_into_channels_first(tmp_path: Path, make: SimpleNamespace, rng: Rng):
    x = rng.integers(0, 256, (32, 32, 3, 3), dtype=np.uint8)
    raw = read_svhn(make.mat(tmp_path / "x.mat", X=x, y=np.array([[10], [1], [9]], np.uint8)))
    assert raw.images.shape == (3, 3, 32, 32)
    for row, column, channel, n in [(0, 31, 0, 0), (5, 7, 1, 2), (31, 0, 2, 1)]:
        assert raw.images[n, channel, row, column] == x[row, column, channel, n]
    assert raw.labels.tolist() == [0, 1, 9]  # 10 is how the file writes a zero


def test_mat_takes_labels_in_doubles_or_as_a_row(tmp_path: Path, make: SimpleNamespace):
    x = np.zeros((32, 32, 3, 2), np.uint8)
    raw = read_svhn(make.mat(tmp_path / "x.mat", X=x, y=np.array([[10.0, 3.0]])))
    assert raw.labels.tolist() == [0, 3]


X2 = np.zeros((32, 32, 3, 2), np.uint8)
Y2 = np.array([[1], [2]], np.uint8)
MAT_FAULTS = {
    "got none named X": {"y": Y2},
    "got none named y": {"X": X2},
    r"uint8 and shape \(32, 32, 3, N\), got X of uint8": {"X": X2.transpose(3, 2, 0, 1), "y": Y2},
    "X of float64": {"X": X2.astype(float), "y": Y2},
    "3 labels for 2 images": {"X": X2, "y": np.array([[1], [2], [3]], np.uint8)},
    "the label 11": {"X": X2, "y": np.array([[1], [11]], np.uint8)},
    "the label -1": {"X": X2, "y": np.array([[-1], [1]], np.int8)},
    "the label 1.5": {"X": X2, "y": np.array([[1.5], [1]])},
    "the label nan": {"X": X2, "y": np.array([[np.nan], [1]])},
}


@pytest.mark.parametrize("said", MAT_FAULTS)
def test_a_misshapen_mat_file_is_refused(tmp_path: Path, make: SimpleNamespace, said: str):
    with pytest.raises(MeadaError, match=said):
        read_svhn(make.mat(tmp_path / "x.mat", **MAT_FAULTS[said]))


@pytest.mark.parametrize("kept", [0.02, 0.5, 0.9, 0.999])
def test_a_truncated_mat_file_is_refused(tmp_path: Path, make: SimpleNamespace, rng: Rng, kept: float):
    x = rng.integers(0, 256, (32, 32, 3, 9), dtype=np.uint8)
    path = make.mat(tmp_path / "x.mat", X=x, y=np.ones((9, 1), np.uint8))
    path.write_bytes(path.read_bytes()[: int(kept * path.stat().st_size)])
    with pytest.raises(MeadaError, match=r"x\.mat .*(not a (whole )?MATLAB 5 file|no array of numbers)"):
        read_svhn(path)


def test_mat_version_7_3_is_refused(tmp_path: Path):
    path = tmp_path / "x.mat"
    path.write_bytes(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + bytes(400))
    with pytest.raises(MeadaError, match="not a MATLAB 5 file"):
        read_svhn(path)


ARRAYS = {
    "X": np.arange(24, dtype=np.uint8).reshape(2, 3, 4),
    "small": np.array([[7]], np.uint8),  # fits into its tag
    "double": np.linspace(-1, 1, 7).reshape(7, 1),
    "single": np.array([[0.5, 2]], np.float32),
    "long_name_of_an_array": np.array([[-3, 2**40]], np.int64),
    "none": np.zeros((0, 3), np.int16),
}


@pytest.mark.parametrize("compressed", [True, False])
def test_matlab_arrays_come_back_as_scipy_wrote_them(tmp_path: Path, compressed: bool):
    others = {"text": "abc", "cell": np.array([1, "a"], object), "complex": np.array([[1j]])}
    scipy.io.savemat(tmp_path / "x.mat", {**others, **ARRAYS}, do_compression=compressed)
    read = read_matlab(tmp_path / "x.mat")
    assert read.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert read[name].dtype == array.dtype
        assert np.array_equal(read[name], array)


def test_matlab_reads_big_endian_files_and_doubles_stored_as_bytes(tmp_path: Path):
    """Worked out by hand from the format's description: y = [3; 10], a double array."""
    tag = lambda kind, size: struct.pack(">2I", kind, size)
    flags = tag(6, 8) + struct.pack(">2I", 6, 0)
    name = struct.pack(">2H", 1, 1) + b"y\0\0\0"  # a small element
    values = struct.pack(">2H", 2, 2) + b"\x03\x0a\0\0"
    array = flags + tag(5, 8) + struct.pack(">2i", 2, 1) + name + values
    header = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x01\x00MI"
    (tmp_path / "x.mat").write_bytes(header + tag(14, len(array)) + array)
    read = read_matlab(tmp_path / "x.mat")
    assert read["y"].tolist() == [[3.0], [10.0]]
    assert read["y"].dtype == np.float64


def test_a_damaged_matlab_file_is_refused_and_never_kills_the_process(tmp_path: Path, rng: Rng):
    scipy.io.savemat(tmp_path / "x.mat", {"X": ARRAYS["X"], "y": ARRAYS["small"]})
    whole, refused = (tmp_path / "x.mat").read_bytes(), 0
    for _ in range(400):
        content = bytearray(whole)
        content[rng.integers(120, len(content))] = rng.integers(256)
        (tmp_path / "x.mat").write_bytes(content)
        try:
            read_matlab(tmp_path / "x.mat")
        except MeadaError:
            refused += 1
    assert refused > 100


def test_libsvm_labels_begin_at_one_and_pixels_are_cut_to_bytes(tmp_path: Path, make: SimpleNamespace):
    first = [-1.0] * 256
    first[1], first[16] = 1.0, 0.0  # row 0 column 1; row 1 column 0
    path = make.libsvm(tmp_path / "u.bz2", [make.usps_line(10, first), "1 3:0.5"])
    raw = read_libsvm(path)
    assert raw.labels.tolist() == [9, 0]
    assert raw.images[0, 0, :3].tolist() == [0, 255, 0]
    assert raw.images[0, 1, 0] == 127  # 127.5, cut off
    assert raw.images[1, 0, 1:4].tolist() == [127, 191, 127]  # left out: 0; (0.5 + 1) / 2 * 255


LIBSVM_FAULTS = {
    "line 2: the label must be one of 1..10, got '0'": "0 1:0.5",
    "line 2: the label must be one of 1..10, got '11'": "11 1:0.5",
    "line 2: the label must be one of 1..10, got 'x'": "x 1:0.5",
    "line 2: the label must be one of 1..10, got ''": "",
    "line 2: '1;0.5' is not index:value": "1 1;0.5",
    "line 2: '1:' is not index:value": "1 1:",
    "line 2: '257:0.5' is not an index 1..256": "1 257:0.5",
    "line 2: '0:0.5' is not an index": "1 0:0.5",
    "line 2: '7:1.5' is not an index 1..256 and a value": "1 7:1.5",
    "line 2: '7:nan' is not an index": "1 7:nan",
}


@pytest.mark.parametrize("said", LIBSVM_FAULTS)
def test_a_malformed_libsvm_line_is_named(tmp_path: Path, make: SimpleNamespace, said: str):
    path = make.libsvm(tmp_path / "u.bz2", ["1 1:0.5", LIBSVM_FAULTS[said]])
    with pytest.raises(MeadaError) as caught:
        read_libsvm(path)
    assert said in str(caught.value)


def test_a_damaged_bz2_file_is_refused(tmp_path: Path, make: SimpleNamespace):
    path = make.libsvm(tmp_path / "u.bz2", ["1 1:0.5"] * 50)
    whole = path.read_bytes()
    faults = {
        f"cut off after {len(whole) - 9}": whole[:-9],
        "not a whole bz2": b"plain text",
        "lines of text": bz2.compress(b"\xff\xfe"),
    }
    for said, content in faults.items():
        path.write_bytes(content)
        with pytest.raises(MeadaError, match=said):
            read_libsvm(path)


def test_png_list_follows_the_list_not_the_folder(tmp_path: Path, make: SimpleNamespace, rng: Rng):
    images = rng.integers(0, 256, (3, 32, 32, 3), dtype=np.uint8)
    make.png_list(tmp_path / "l.txt", tmp_path / "f", images, [4, 5, 6])
    (tmp_path / "l.txt").write_text("00000002.png 6\n00000000.png 4\n")
    raw = read_pngs(read_png_list(tmp_path / "l.txt"), tmp_path / "f")
    assert raw.labels.tolist() == [6, 4]
    assert np.array_equal(raw.images, images[[2, 0]].transpose(0, 3, 1, 2))


@pytest.mark.parametrize("line", ["a.png", "a.png 10", "a.png x", "a.png 1 2", "", "../a.png 1"])
def test_a_malformed_list_line_is_named(tmp_path: Path, line: str):
    (tmp_path / "l.txt").write_text(f"ok.png 3\n{line}\n")
    with pytest.raises(MeadaError, match="line 2: .* is not a file's name and a digit"):
        read_png_list(tmp_path / "l.txt")


def test_a_list_that_is_no_text_is_refused(tmp_path: Path):
    (tmp_path / "l.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(MeadaError, match="must be a text file in UTF-8"):
        read_png_list(tmp_path / "l.txt")


def test_a_listed_image_must_be_there_whole_and_of_the_right_size(tmp_path: Path, rng: Rng):
    entries = [("a.png", 1)]
    with pytest.raises(MeadaError, match="a.png is missing, though the list names it"):
        read_pngs(entries, tmp_path)
    image = Image.fromarray(rng.integers(0, 256, (32, 32, 3), dtype=np.uint8))
    image.save(tmp_path / "a.png")
    whole = (tmp_path / "a.png").read_bytes()
    for content in (whole[:1000], b"<html></html>", b""):
        (tmp_path / "a.png").write_bytes(content)
        with pytest.raises(MeadaError, match="a.png is not a whole PNG image"):
            read_pngs(entries, tmp_path)
    image.resize((28, 30)).save(tmp_path / "a.png")
    with pytest.raises(MeadaError, match="a.png must be 32x32 pixels, got 28x30"):
        read_pngs(entries, tmp_path)
