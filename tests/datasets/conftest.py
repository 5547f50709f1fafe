"""Small files in the published formats, made afresh for each test."""

import bz2
import gzip
import struct
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.io
from numpy.typing import NDArray
from PIL import Image


def idx(path: Path, array: NDArray[np.uint8], magic: int | None = None) -> Path:
    number = 0x0800 + array.ndim if magic is None else magic
    header = struct.pack(f">{1 + array.ndim}I", number, *array.shape)
    return _put(path, gzip.compress(header + array.tobytes()))


def mat(path: Path, **arrays: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    scipy.io.savemat(path, arrays, do_compression=True)
    return path


def libsvm(path: Path, lines: Sequence[str]) -> Path:
    return _put(path, bz2.compress("".join(f"{line} \n" for line in lines).encode()))


def png_list(listing: Path, folder: Path, images: NDArray[np.uint8], labels: Sequence[int]) -> None:
    """``images`` are (N, H, W, 3)."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"{row:08}.png" for row in range(len(images))]
    for name, image in zip(names, images, strict=True):
        Image.fromarray(image).save(folder / name)
    lines = (f"{name} {label}\n" for name, label in zip(names, labels, strict=True))
    listing.write_text("".join(lines))


def usps_line(label: int, values: Sequence[float]) -> str:
    return " ".join([str(label), *(f"{i}:{value:.6f}" for i, value in enumerate(values, start=1))])


def _put(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.fixture
def make() -> SimpleNamespace:
    """Writers of the published formats, independent of the readers under test."""
    return SimpleNamespace(idx=idx, mat=mat, libsvm=libsvm, png_list=png_list, usps_line=usps_line, put=_put)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.fixture
def published(tmp_path: Path, rng: np.random.Generator) -> Path:
    """A data folder with every digits domain in small: 12 + 4, 5, 3, 4 and 6 images."""
    root = tmp_path / "data"
    pixels = lambda *shape: rng.integers(0, 256, shape, dtype=np.uint8)
    for split, n in (("train", 12), ("t10k", 4)):
        idx(root / f"mnist/{split}-images-idx3-ubyte.gz", pixels(n, 28, 28))
        idx(root / f"mnist/{split}-labels-idx1-ubyte.gz", np.arange(n, dtype=np.uint8) % 10)
    svhn_labels = np.array([[1], [10], [9], [2], [10]], np.uint8)
    mat(root / "svhn/test_32x32.mat", X=pixels(32, 32, 3, 5), y=svhn_labels)
    folder = root / "mnist_m"
    png_list(folder / "mnist_m_test_labels.txt", folder / "mnist_m_test", pixels(3, 32, 32, 3), [7, 0, 9])
    syn_labels = np.array([[3], [10], [1], [4]], np.uint8)
    mat(root / "syn/synth_test_32x32.mat", X=pixels(32, 32, 3, 4), y=syn_labels)
    lines = [usps_line(1 + n, rng.uniform(-1, 1, 256).tolist()) for n in (9, 0, 1, 2, 3, 5)]
    libsvm(root / "usps/usps.t.bz2", lines)
    return root
