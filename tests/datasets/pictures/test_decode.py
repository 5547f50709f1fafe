"""A picture file becomes 8-bit RGB of one size, or a sentence says why not."""

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from meada.datasets.pictures.decode import decode
from meada.errors import MeadaError


def png16(path: Path, side: int = 4) -> Path:
    """A colour PNG of 16 bits per channel, which Pillow can read and not write."""
    piece = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + b"\x12\x34" * 3 * side for _ in range(side))
    header = piece(b"IHDR", struct.pack(">IIBBBBB", side, side, 16, 2, 0, 0, 0))
    body = piece(b"IDAT", zlib.compress(rows)) + piece(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + header + body)
    return path


def test_channels_come_first_and_in_the_order_red_green_blue(tmp_path):
    pixels = np.zeros((4, 4, 3), np.uint8)
    pixels[0, 1] = (10, 20, 30)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    out = decode(tmp_path / "a.png", 4)
    assert out.shape == (3, 4, 4) and out.dtype == np.uint8
    assert out[:, 0, 1].tolist() == [10, 20, 30] and out.sum() == 60


def test_halving_a_row_of_four_is_pillows_bilinear_filter(tmp_path):
    """Its support widens with the scale: weights 3, 3, 1 of 7 for the first of two pixels."""
    Image.fromarray(np.array([[0, 70, 140, 210]] * 4, np.uint8)).save(tmp_path / "a.png")
    assert decode(tmp_path / "a.png", 2)[0, 0].tolist() == [50, 160]


def test_grey_is_repeated_and_transparency_is_white(tmp_path):
    Image.new("L", (2, 2), 77).save(tmp_path / "grey.png")
    Image.new("RGBA", (2, 2), (0, 0, 0, 0)).save(tmp_path / "clear.png")
    assert (decode(tmp_path / "grey.png", 2) == 77).all()
    assert (decode(tmp_path / "clear.png", 2) == 255).all()


def test_a_photograph_is_turned_as_its_camera_was_held(tmp_path):
    pixels = np.zeros((2, 2, 3), np.uint8)
    pixels[0, 0] = 255  # top left
    exif = Image.Exif()
    exif[0x0112] = 6  # to be seen turned a quarter to the right
    Image.fromarray(pixels).save(tmp_path / "a.png", exif=exif)
    assert decode(tmp_path / "a.png", 2)[0].tolist() == [[0, 255], [0, 0]]


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda p: Image.new("CMYK", (4, 4)).save(p / "x.jpg"), "is CMYK"),
        (lambda p: Image.fromarray(np.zeros((4, 4), np.uint16)).save(p / "x.png"), "than 8 bits"),
        (lambda p: png16(p / "x.png"), "than 8 bits"),
        (lambda p: Image.fromarray(np.zeros((4, 4), np.float32)).save(p / "x.tif"), "than 8 bits"),
        (lambda p: (p / "x.jpg").write_bytes(b""), "not a readable picture"),
        (lambda p: (p / "x.jpg").write_text("<html>"), "not a readable picture"),
    ],
)
def test_what_has_no_exact_form_is_refused(tmp_path, make, sentence):
    make(tmp_path)
    (path,) = tmp_path.iterdir()
    with pytest.raises(MeadaError, match=sentence):
        decode(path, 4)


@pytest.mark.parametrize("ending", ["jpg", "png"])
def test_a_file_cut_short_is_refused(tmp_path, ending, rng):
    path = tmp_path / f"x.{ending}"
    Image.fromarray(rng.integers(0, 256, (64, 64, 3), np.uint8)).save(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(MeadaError, match="not a readable picture"):
        decode(path, 8)


def _palette(path: Path) -> None:
    image = Image.new("P", (4, 4), 1)
    image.putpalette([0, 0, 0, 10, 20, 30])
    image.save(path)


def _clear_palette(path: Path) -> None:
    image = Image.new("P", (4, 4), 0)
    image.putpalette([9, 9, 9, 10, 20, 30])
    image.save(path, transparency=0)


def _deep(path: Path) -> None:
    Image.fromarray(np.full((4, 4), 0xC8FF, np.uint16)).save(path)


KINDS = {
    "palette.png": (_palette, (10, 20, 30)),
    "clear_palette.png": (_clear_palette, (255, 255, 255)),
    "half_clear.png": (lambda p: Image.new("LA", (4, 4), (0, 51)).save(p), (204, 204, 204)),
    "black_and_white.png": (lambda p: Image.new("1", (4, 4), 1).save(p), (255, 255, 255)),
    "deep.png": (_deep, (0xC8, 0xC8, 0xC8)),  # 16 bits: the upper 8, not cut off at 255
    "deep.tif": (_deep, (0xC8, 0xC8, 0xC8)),
    "deep_colour.png": (lambda p: png16(p), (0x12, 0x12, 0x12)),
    "floats.tif": (lambda p: Image.fromarray(np.full((4, 4), 0.4, np.float32)).save(p), (102, 102, 102)),
    "ink.jpg": (lambda p: Image.new("CMYK", (4, 4), (0, 255, 255, 0)).save(p, quality=100), (255, 0, 0)),
    "lab.tif": (lambda p: Image.new("LAB", (4, 4), (255, 128, 128)).save(p), (255, 255, 255)),
}


@pytest.mark.parametrize("name", KINDS)
def test_kinds_of_picture_in_eight_bits(tmp_path, name):
    write, wanted = KINDS[name]
    write(tmp_path / name)
    found = decode(tmp_path / name, 2, lenient=True)
    assert np.abs(found.astype(int) - np.array(wanted)[:, None, None]).max() <= 3  # JPEG rounds


def test_all_sixteen_bits_of_a_ramp_keep_their_order(tmp_path):
    Image.fromarray(np.arange(0, 65536, 256, dtype=np.uint16).reshape(16, 16)).save(tmp_path / "ramp.png")
    found = decode(tmp_path / "ramp.png", 16, lenient=True)
    assert found[0].ravel().tolist() == list(range(256))
