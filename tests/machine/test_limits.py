"""Files of strangers are refused in one sentence before they fill memory or wait for ever."""

import bz2
import gzip
import os
import struct
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from meada.corruptions.sources import Tree
from meada.datasets.pictures.decode import decode
from meada.datasets.published import catalogue
from meada.datasets.published.catalogue import File
from meada.datasets.published.formats import read_idx, read_libsvm, read_matlab
from meada.errors import MeadaError
from meada.machine import limits
from meada.machine.limits import MIB, map_npy, regular, unpacked


@pytest.fixture
def peak():
    """Bytes that Python asked for since the test began, at most."""
    tracemalloc.start()
    yield lambda: tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> int:
    """Bounds of 1 MiB, so that bombs are quick to make."""
    monkeypatch.setattr("meada.datasets.published.formats.MAX_UNPACKED_BYTES", MIB)
    monkeypatch.setattr("meada.datasets.published.formats.LIBSVM_TEXT", MIB)
    return MIB


def bomb(path: Path, kind: str, size: int = 40 * MIB) -> Path:
    """Zeros, one megabyte after another."""
    with gzip.open(path, "wb", 1) if kind == "gzip" else bz2.open(path, "wb", 1) as file:
        for _ in range(size // MIB):
            file.write(bytes(MIB))
    return path


@pytest.mark.parametrize("kind", ["gzip", "bz2"])
def test_a_bomb_is_given_up_at_the_bound(tmp_path, peak, kind):
    path = bomb(tmp_path / "bomb", kind)
    with pytest.raises(MeadaError, match="must hold at most 1,048,576 bytes when it is decompressed, got more"):
        unpacked(path, kind, MIB)
    assert peak() < 20 * MIB and path.stat().st_size < MIB


def test_readers_of_digits_have_a_bound(tmp_path, small, monkeypatch):
    monkeypatch.setattr(limits, "MAX_UNPACKED_BYTES", small)
    monkeypatch.setattr(
        "meada.datasets.published.formats.unpacked", lambda path, kind, _=0: unpacked(path, kind, small)
    )
    with pytest.raises(MeadaError, match="at most 1,048,576 bytes"):
        read_idx(bomb(tmp_path / "a.gz", "gzip", 2 * MIB), 3)
    with pytest.raises(MeadaError, match="at most 1,048,576 bytes"):
        read_libsvm(bomb(tmp_path / "a.bz2", "bz2", 2 * MIB))


def element(kind: int, data: bytes) -> bytes:
    return struct.pack("<2I", kind, len(data)) + data + (b"" if kind == 15 else bytes(-len(data) % 8))


def mat(path: Path, *elements: bytes) -> Path:
    path.write_bytes(b"x" * 124 + struct.pack("<H", 0x100) + b"IM" + b"".join(elements))
    return path


def array(n: int, stored: int = 2, kind: int = 9, shape: tuple[int, ...] | None = None) -> bytes:
    dims = struct.pack(f"<{len(shape or (n, 1))}i", *(shape or (n, 1)))
    parts = element(6, struct.pack("<2I", kind, 0)) + element(5, dims) + element(1, b"X") + element(stored, bytes(n))
    return element(14, parts)


def test_a_mat_file_of_bombs_stays_within_the_bound(tmp_path, small, peak):
    one = element(15, zlib.compress(array(600_000)))
    assert read_matlab(mat(tmp_path / "one.mat", one))["X"].shape == (600_000, 1)
    with pytest.raises(MeadaError, match="must hold at most .* bytes when it is decompressed"):
        read_matlab(mat(tmp_path / "two.mat", one, one))
    with pytest.raises(MeadaError, match="must hold at most 1,048,576 bytes"):
        read_matlab(mat(tmp_path / "bomb.mat", element(15, zlib.compress(bytes(20 * MIB)))))
    assert peak() < 30 * MIB  # the bomb itself was made here


@pytest.mark.parametrize(
    "content, sentence",
    [
        (array(200_000, kind=6), "an array of more than 1,048,576 bytes"),  # bytes that become doubles
        (array(8, shape=(-8, -1)), r"8 numbers for an array of shape \(-8, -1\)"),
        (array(8, shape=(2**30, 2**30)), "8 numbers for an array of shape"),
    ],
)
def test_a_mat_array_that_lies_about_its_size_is_refused(tmp_path, small, content, sentence):
    with pytest.raises(MeadaError, match=sentence):
        read_matlab(mat(tmp_path / "x.mat", content))


def test_compressed_data_in_compressed_data_three_thousand_times(tmp_path):
    content = array(8)
    for _ in range(3_000):
        content = element(15, zlib.compress(content))
    with pytest.raises(MeadaError, match="compressed data inside compressed data"):
        read_matlab(mat(tmp_path / "deep.mat", content))


def npy(path: Path, shape: object, descr: str = "|u1", data: bytes = b"", version: bytes = b"\x01\x00") -> Path:
    header = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    size = struct.pack("<H" if version == b"\x01\x00" else "<I", len(header))
    path.write_bytes(b"\x93NUMPY" + version + size + header + data)
    return path


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda p: p.write_bytes(b""), "must be a .npy file of numbers, got"),
        (lambda p: p.write_bytes(b"\x93NUMPY\x02\x00\xff\xff\xff\x7f"), "got a header of 2,147,483,647 bytes"),
        (lambda p: npy(p, "(-3, 4)", data=bytes(12)), r"of shape \(-3, 4\)"),
        (lambda p: npy(p, "(-3, -4)", data=bytes(12)), r"of shape \(-3, -4\) in 12 bytes, got 12 bytes"),
        (lambda p: npy(p, "(1000000000000, 3)"), "in 3,000,000,000,000 bytes, got 0 bytes"),
        (lambda p: npy(p, "(3,)", data=bytes(4)), "in 3 bytes, got 4 bytes"),
        (lambda p: npy(p, "(1,)", "|O", bytes(8)), "must be a .npy file of numbers, got object"),
        (lambda p: npy(p, "(" * 5_000 + ")" * 5_000), "must be a .npy file of numbers"),
        (lambda p: npy(p, "'x'"), "must be a .npy file of numbers"),
        (lambda p: npy(p, "(3,)", "nonsense"), "must be a .npy file of numbers"),
        (lambda p: p.write_bytes(b"PK\x03\x04 no array"), "must be a .npy file of numbers"),
        (lambda p: p.mkdir(), "must be a file, got a folder"),
        (lambda p: os.mkfifo(p), "must be a file, got a FIFO"),
        (lambda p: p.symlink_to("/dev/zero"), "must be a file, got a device"),
        (lambda p: None, "is missing"),
    ],
)
def test_a_npy_file_that_is_none_is_one_sentence(tmp_path, make, sentence):
    make(tmp_path / "x.npy")
    with pytest.raises(MeadaError, match=sentence):
        map_npy(tmp_path / "x.npy")


@pytest.mark.parametrize("shape", [(0,), (0, 4), (2, 3), (), (4, 0, 3)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_what_numpy_saves_is_what_is_mapped(tmp_path, shape, order):
    array = np.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape), order=order)
    np.save(tmp_path / "x.npy", array)
    found = map_npy(tmp_path / "x.npy")
    assert found.dtype == array.dtype and np.array_equal(found, array)


def test_a_file_beyond_the_bound_is_not_read(tmp_path):
    with (tmp_path / "large").open("wb") as file:
        file.truncate(limits.MAX_DATA_BYTES + 1)  # sparse: it takes no room
    with pytest.raises(MeadaError, match="must have at most 2,147,483,648 bytes, got 2,147,483,649"):
        regular(tmp_path / "large")
    with pytest.raises(MeadaError, match="must have at most 2,147,483,648 bytes"):
        catalogue.locate(File("large"), tmp_path)


def test_a_pipe_among_published_files_and_pictures_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(MeadaError, match="must be a file, got a FIFO"):
        catalogue.locate(File("pipe.png"), tmp_path)
    with pytest.raises(MeadaError, match="must be a file, got a folder, a FIFO or a device"):
        decode(tmp_path / "pipe.png", 8)


def test_a_picture_of_too_many_pixels_is_refused_from_its_header(tmp_path, peak):
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0))
    (tmp_path / "x.png").write_bytes(b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(bytes(100))))
    with pytest.raises(MeadaError, match="has more than 178 million pixels"):
        decode(tmp_path / "x.png", 8)
    assert peak() < 5 * MIB
    assert Image.MAX_IMAGE_PIXELS is not None  # nobody switched the guard off


def test_postscript_is_not_run_whatever_its_file_is_called(tmp_path, monkeypatch):
    """Pillow knows a picture by its content, and hands PostScript to Ghostscript."""
    from PIL import EpsImagePlugin

    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", lambda *_, **__: pytest.fail("was run"))
    text = "%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 40 40\n%%EndComments\nshowpage\n%%EOF\n"
    (tmp_path / "a.png").write_text(text)
    with pytest.raises(MeadaError, match="unknown format"):
        decode(tmp_path / "a.png", 8, lenient=True)
    with pytest.raises(MeadaError, match="cannot be read as a picture"):
        Tree(tmp_path, (Path("a.png"),)).read(0)
