"""Write a torch Dataset or a Hugging Face dataset as PNG files with a CSV file.

Samples are read one at a time, so memory does not grow with their number, and everything that works for folders
(detection of copies, groups, the split, resuming) works for data sets too.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch.utils.data import DataLoader

from meada.datasets.examples import IMAGE_KEYS, LABEL_KEYS, check_map_style, first_key
from meada.datasets.pictures.decode import flat, upright, upright_rgb
from meada.datasets.pictures.survey import content_hash
from meada.errors import MeadaError
from meada.files import write_text
from meada.images.inputs import in_unit_range

CHANNELS = (1, 3, 4)
CHECKED = 16  # items that are compared on resume


class Columns(NamedTuple):
    """Position of the picture and the label in an item: indices of a tuple, or keys of a dictionary."""

    image: Any
    label: Any
    names: tuple[str, ...] = ()  # class names, if the data set has them


def pictures_of(data: Any, folder: Path, *, name: str = "data", group: str = "") -> Path:
    """A path as it is; for a data set, write its pictures to ``folder`` and return the path of their CSV file.

    The CSV file is written last: if it exists, the pictures are complete and are not written again.
    """
    if isinstance(data, str | Path):
        return Path(data)
    columns = _columns(data, name.rstrip("0123456789"))
    listing = folder / f"{name}.csv"
    if listing.is_file():
        _same_items(data, columns, listing)
        return listing
    (folder / name).mkdir(parents=True, exist_ok=True)
    lines = list[list[Any]]()
    for k in range(len(data)):
        item = data[k]
        file = f"{name}/{k:08}.png"
        _picture(_entry(item, columns.image, k), k).save(folder / file, compress_level=1)
        more = [_entry(item, group, k)] if group and isinstance(item, Mapping) and group in item else []
        lines.append([file, _label(_entry(item, columns.label, k), k), *more])
    write_text(listing, _as_csv(lines, columns.names, group))
    return listing


def _columns(data: Any, name: str) -> Columns:
    kinds = "a folder, a CSV file, a Dataset or a Hugging Face dataset"
    if isinstance(data, tuple | list | DataLoader):
        hint = ": give its .dataset" if isinstance(data, DataLoader) else ""
        raise MeadaError(f"{name} must be {kinds}, got {type(data).__name__}{hint}")
    check_map_style(data, kinds, "write its pictures to a folder CLASS/*.png", name)
    features = getattr(data, "features", None)
    if isinstance(features, Mapping):
        return _of_features(features)
    names = tuple(map(str, getattr(data, "classes", None) or ()))
    first = data[0]
    if isinstance(first, Mapping):
        return Columns(first_key(first, IMAGE_KEYS), first_key(first, LABEL_KEYS), names)
    if isinstance(first, tuple | list) and len(first) >= 2:
        return Columns(0, 1, names)
    raise MeadaError(f"items of the data set must be (image, label) or a dictionary of both, got {_described(first)}")


def _of_features(features: Mapping[str, Any]) -> Columns:
    """Find the columns by the features of a Hugging Face dataset."""
    images = [key for key, what in features.items() if type(what).__name__ == "Image"]
    labels = [key for key, what in features.items() if type(what).__name__ == "ClassLabel"]
    image = images[0] if images else first_key(features, IMAGE_KEYS)
    label = labels[0] if len(labels) == 1 else first_key(features, LABEL_KEYS)
    return Columns(image, label, tuple(getattr(features[label], "names", None) or ()))


def _entry(item: Any, key: Any, k: int) -> Any:
    try:
        return item[key]
    except (KeyError, IndexError, TypeError):
        raise MeadaError(f"item {k:,} of the data set must have an image and a label, got {_described(item)}") from None


def _picture(x: Any, k: int) -> Image.Image:
    """Convert an image of any kind to 8-bit RGB."""
    if 0 in (shape := x.size if isinstance(x, Image.Image) else getattr(x, "shape", ())):
        raise MeadaError(f"images must have at least one pixel, got shape {tuple(shape)} in item {k:,}")
    if isinstance(x, Image.Image):
        return upright_rgb(x)
    if not isinstance(x, torch.Tensor | np.ndarray):
        raise MeadaError(f"images must be PIL images, arrays or tensors, got {_described(x)} in item {k:,}")
    array = x.detach().cpu().numpy() if isinstance(x, torch.Tensor) else x
    pixels = _bytes(torch.from_numpy(np.require(array, requirements=["C", "W"])), k)  # torch warns of read-only ones
    if pixels.ndim == 2:
        return Image.fromarray(pixels).convert("RGB")
    if pixels.ndim != 3 or not {pixels.shape[0], pixels.shape[2]} & set(CHANNELS):
        raise MeadaError(f"images must be (C, H, W), (H, W, C) or (H, W), got shape {pixels.shape} in item {k:,}")
    last = pixels if pixels.shape[2] in CHANNELS and pixels.shape[0] not in CHANNELS else pixels.transpose(1, 2, 0)
    whole = np.ascontiguousarray(last[..., 0] if last.shape[2] == 1 else last)
    return flat(Image.fromarray(whole))


def _bytes(x: torch.Tensor, k: int) -> NDArray[np.uint8]:
    if x.is_floating_point():
        x = (in_unit_range(x) * 255).round()
    elif x.dtype == torch.uint16:
        x = x.to(torch.int32) >> 8
    elif x.dtype not in (torch.uint8, torch.bool):
        raise MeadaError(f"images must be uint8, uint16 or floats in [0, 1], got {x.dtype} in item {k:,}")
    return x.to(torch.uint8).numpy() * np.uint8(255 if x.dtype == torch.bool else 1)


def _label(y: Any, k: int) -> int | str | tuple[int, ...]:
    """A class number, a class name, or 0 and 1 for each of several labels."""
    if isinstance(y, str) and y.strip():
        return y.strip()
    try:
        values = np.asarray(y)
    except (TypeError, ValueError):
        values = np.asarray(None)
    row = values.ndim == 1 and values.dtype.kind in "iubf" and bool(np.isin(values, (0, 1)).all())
    if row and len(values) > 1:
        return tuple(int(value) for value in values)
    one = values.size == 1 and values.ndim < 2  # MedMNIST gives a class number as an array of shape (1,)
    if one and (row or values.dtype.kind in "iub") and int(values.item()) >= 0:
        return int(values.item())
    raise MeadaError(f"labels must be class numbers from 0 up, names, or a row of 0 and 1, got {y!r:.60} in item {k:,}")


def _as_csv(lines: Sequence[Sequence[Any]], names: Sequence[str], group: str) -> str:
    """The CSV text; class numbers become names that sort like the numbers."""
    file = StringIO()
    several = [line[1] for line in lines if isinstance(line[1], tuple)]
    if several and (len(several) < len(lines) or len({len(row) for row in several}) > 1):
        raise MeadaError("labels must be of one kind for all pictures, got rows of 0 and 1 next to others")
    digits = len(str(max((line[1] for line in lines if isinstance(line[1], int)), default=0)))
    rows = [[file, *_cells(y, names, digits), *more] for file, y, *more in lines]
    labels = (names or [f"label{k}" for k in range(len(several[0]))]) if several else ["label"]
    csv.writer(file).writerows([["path", *labels, *([group] if len(lines[0]) > 2 else [])], *rows])
    return file.getvalue()


def _cells(y: int | str | tuple[int, ...], names: Sequence[str], digits: int) -> Iterator[Any]:
    if isinstance(y, tuple):
        yield from y
    elif isinstance(y, str):
        yield y
    elif not names:
        yield f"{y:0{digits}}"
    elif y < len(names):
        yield names[y]
    else:
        raise MeadaError(f"labels must be below the {len(names):,} classes of the data set, got {y}")


def _same_items(data: Any, columns: Columns, listing: Path) -> None:
    """Refuse to resume with another data set: compare the length, and labels and pixels of some items.

    Pixels are not compared if they change from one read to the next, as under random transforms.
    """
    heading, *rows = csv.reader(listing.read_text(encoding="utf-8").splitlines())
    if len(rows) != len(data):
        raise MeadaError(f"{listing} must list the data set given, got {len(rows):,} pictures for its {len(data):,}")
    digits, seen = len(rows[0][1]), dict[int, str]()
    for k in sorted({i * len(data) // CHECKED for i in range(CHECKED)}):
        item = data[k]
        now = [str(cell) for cell in _cells(_label(_entry(item, columns.label, k), k), columns.names, digits)]
        if rows[k][1 : 1 + len(now)] != now:
            raise MeadaError(
                f"{listing} must list the data set given, got label {rows[k][1]} for {now[0]} in item {k:,}"
            )
        seen[k] = content_hash(_picture(_entry(item, columns.image, k), k))
    other = [k for k, one in seen.items() if _differs(listing.parent / rows[k][0], one)]
    again = lambda k: content_hash(_picture(_entry(data[k], columns.image, k), k))
    if other and all(again(k) == one for k, one in seen.items()):
        raise MeadaError(f"{listing} must list the data set given, got other pixels in item {other[0]:,}")


def _differs(file: Path, content: str) -> bool:
    try:
        return content_hash(upright(file)) != content
    except MeadaError:  # a file that cannot be read is left out by the survey, and named
        return False


def _described(x: Any) -> str:
    if isinstance(x, tuple | list):
        return f"a {type(x).__name__} of {len(x)} ({', '.join(type(one).__name__ for one in x[:3])})"
    if isinstance(x, Mapping):
        return f"a dictionary of {', '.join(map(str, list(x)[:5]))}"
    return f"a {type(x).__name__}"
