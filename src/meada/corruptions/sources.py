"""Sources for ``meada corrupt``: an array with labels, a folder of pictures, or a data set by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
from jaxtyping import Integer, UInt8
from PIL import Image, ImageOps

from meada.errors import MeadaError, nearest
from meada.machine.limits import map_npy, picture_formats, regular

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm", ".webp", ".tif", ".tiff"})


@dataclass(frozen=True)
class Stack:
    """Images of one size, channels last as the published files have them, and their labels."""

    name: str
    images: UInt8[np.ndarray, "N H W C"]
    labels: Integer[np.ndarray, " M"]  # as many, which is checked below

    def __post_init__(self) -> None:
        if len(self.images) == 0:
            raise MeadaError(f"{self.name} holds no image")
        if len(self.images) != len(self.labels):
            raise MeadaError(
                f"{self.name} must hold one label for each image, got {len(self.images)} images "
                f"and {len(self.labels)} labels"
            )

    def digest(self) -> str:
        return sha256(np.ascontiguousarray(self.images).data).hexdigest()


@dataclass(frozen=True)
class Tree:
    """Pictures below a folder, sorted by path; the position in this order is the index."""

    root: Path
    paths: tuple[Path, ...]  # below root
    size: int | None = None  # cut out the middle square and resize it to this

    @property
    def name(self) -> str:
        return str(self.root)

    def read(self, number: int) -> UInt8[np.ndarray, "C H W"]:
        path = self.root / self.paths[number]
        try:
            with Image.open(regular(path, None), formats=picture_formats()) as file:
                image = ImageOps.exif_transpose(file)
                image = image.convert("L" if image.mode in ("1", "L", "I;16") else "RGB")
        except MeadaError:
            raise
        except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError) as error:
            raise MeadaError(f"{path} cannot be read as a picture: {error}") from error
        if self.size:
            square = (self.size, self.size)
            image = ImageOps.fit(image, square, Image.Resampling.BICUBIC)
        elif min(image.size) < 28 or max(image.size) > 512:
            raise MeadaError(
                f"{path} is {image.width}x{image.height}: sides run from 28 to 512, "
                "or give --size to cut and resize every picture"
            )
        pixels = np.asarray(image)
        return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)

    def digest(self) -> str:
        """Hash of the pictures' names and sizes in bytes, to notice that a folder has changed."""
        lines = (f"{path.as_posix()} {(self.root / path).stat().st_size}\n" for path in self.paths)
        return sha256("".join(lines).encode(errors="surrogateescape")).hexdigest()


def open_source(
    text: str, labels: Path | None = None, size: int | None = None, sources: Mapping[str, Callable[[], Stack]] = {}
) -> Stack | Tree:
    """Open a ``.npy`` file, a folder or one of the names in ``sources``."""
    path = Path(text)
    if text in sources:
        return sources[text]()
    if path.is_dir():
        return tree(path, size)
    if path.suffix == ".npy":
        return stack(path, labels or path.with_name("labels.npy"))
    known = nearest(text, sources) if sources else "no data set can be given by name here"
    raise MeadaError(f"'{text}' is neither a folder nor a .npy file of images; {known}")


def stack(path: Path, labels: Path) -> Stack:
    images = map_npy(path)
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] not in (1, 3):
        raise MeadaError(
            f"{path} must hold uint8 images of shape (N, H, W, 3) or (N, H, W, 1), "
            f"got {images.dtype} of shape {images.shape}"
        )
    classes = map_npy(labels)
    if classes.ndim != 1 or not np.issubdtype(classes.dtype, np.integer):
        raise MeadaError(f"{labels} must hold N whole numbers, got {classes.dtype} of shape {classes.shape}")
    if classes.size and int(classes.min()) < 0:
        raise MeadaError(f"{labels} must hold labels from 0 up, got {int(classes.min())}")
    return Stack(str(path), images, classes)


def tree(root: Path, size: int | None = None) -> Tree:
    found = (path for path in root.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
    paths = tuple(sorted(path.relative_to(root) for path in found))
    if not paths:
        raise MeadaError(f"{root} must hold pictures CLASS/*.png (or .jpg and the like), got none")
    targets: dict[Path, Path] = {}
    for path in paths:
        other = targets.setdefault(path.with_suffix(".png"), path)
        if other is not path:
            raise MeadaError(f"{root} holds {other} and {path}, which would both become PNG: rename one")
    return Tree(root, paths, size)
