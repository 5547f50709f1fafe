"""Read labelled images from arrays, a Dataset, a DataLoader, a Hugging Face dataset or a folder."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, default_collate
from torch.utils.data.sampler import RandomSampler, SequentialSampler

from meada.errors import MeadaError
from meada.images.inputs import as_images, as_labels, from_pil
from meada.pool import Pool
from meada.pool.storage import BlockFile, DiskImages
from meada.types import Labels

IMAGE_KEYS = ("pixel_values", "image", "images", "img", "picture", "x")
LABEL_KEYS = ("labels", "label", "fine_label", "class", "target", "targets", "y")
READ = 256  # images read at once
KINDS = "(images, labels), a Dataset, a DataLoader, a Hugging Face dataset or the path of a folder of pictures"

Examples = Iterator[tuple[Tensor, Labels]]


def batches(data: Any, batch_size: int = READ, *, side: int = 224) -> Examples:
    """Batches of images (uint8, or floats in [0, 1]) and labels, without reading all data into memory.

    ``side`` is the size that the pictures of a folder are resized to. A DataLoader keeps its own batches.

    >>> [len(y) for x, y in batches((torch.rand(5, 3, 4, 4), [0, 1, 2, 0, 1]), 2)]
    [2, 2, 1]
    """
    if batch_size < 1:
        raise MeadaError(f"batch_size must be 1 or more, got {batch_size}")
    if (pair := arrays(data, side)) is not None:
        yield from zip(pair[0].split(batch_size), pair[1].split(batch_size), strict=True)
    elif isinstance(data, DataLoader):
        yield from map(checked, data)
    else:
        yield from reader(readable(data), batch_size)


def pool_of(data: Any, folder: Path, *, side: int = 224) -> Pool:
    """A training set: arrays are used directly, other data are read once into a memory-mapped file in ``folder``."""
    if isinstance(data, Pool):
        return data
    if (pair := arrays(data, side)) is not None:
        return Pool(*pair)
    workers: int = 0
    collate: Callable[[Any], Any] = collated
    if isinstance(data, DataLoader):
        _warn_unused(data)
        workers, collate = data.num_workers, collated if data.collate_fn is default_collate else data.collate_fn
        data = data.dataset
    return Pool(*on_disk(reader(readable(data, streams=False), READ, workers, collate), len(data), folder))


def arrays(data: Any, side: int, classes: Sequence[str] | None = None) -> tuple[Tensor, Labels] | None:
    """Images and labels of two arrays or of a folder (memory-mapped); None for other kinds of data.

    The classes ``CLASS/*.jpg`` of a folder are numbered as in ``classes``, by default in the order of their names.
    """
    if isinstance(data, str | Path):
        from meada.datasets.folder import read_pictures

        samples = read_pictures(Path(data), classes, side, strict=True)
        return samples.images, samples.labels
    if not isinstance(data, tuple | list):
        return None
    if len(data) != 2:
        raise MeadaError(f"data must be {KINDS}, got a {type(data).__name__} of {len(data)}")
    images = as_images(data[0])
    return images, as_labels(data[1], len(images))


def reader(data: Any, size: int, workers: int = 0, collate: Callable[[Any], Any] | None = None) -> Examples:
    """Read a data set in order, in checked batches, without using the global random state."""
    loader: DataLoader[Any] = DataLoader(
        data, size, num_workers=workers, collate_fn=collate or collated, generator=torch.Generator()
    )
    return map(checked, loader)


def on_disk(examples: Examples, n: int, folder: Path) -> tuple[DiskImages, Labels]:
    """Write images to a file in ``folder``, batch by batch; labels stay in memory."""
    file: BlockFile | None = None
    labels: list[Labels] = []
    for x, y in examples:
        x = x if x.dtype == torch.uint8 else x.to(torch.get_default_dtype())
        if file is None:
            file = BlockFile(folder / "source.npy", (n, *x.shape[1:]), x.dtype, "given")
            shape, dtype = x.shape[1:], x.dtype
        if x.shape[1:] != shape or x.dtype != dtype:
            raise MeadaError(
                f"images must all have one size and type, got {tuple(shape)} {dtype} and {tuple(x.shape[1:])} {x.dtype}"
            )
        file.write(x, sum(map(len, labels)))
        labels.append(y)
    if file is None:
        raise MeadaError("data must hold at least one labelled image, got none")
    return DiskImages(file.path), torch.cat(labels)


def checked(batch: Any) -> tuple[Tensor, Labels]:
    """The images and labels of a batch; other entries are ignored."""
    x, y = _pair(batch, "data must give images with labels")
    images = as_images(x)
    return images, as_labels(y, len(images))


def collated(items: Sequence[Any]) -> tuple[Tensor, Tensor]:
    """Collate items (pairs or dicts) into one batch; PIL images become uint8."""
    pairs = [_pair(item, "items of the data set must be (image, label) or a dict with both") for item in items]
    images = [_image(x) for x, _ in pairs]
    shapes = sorted({tuple(x.shape) for x in images})
    if len(shapes) > 1:
        raise MeadaError(
            f"images must all have one size, got {shapes[0]} and {shapes[1]}: resize them in the data set's transform"
        )
    return torch.stack(images), torch.stack([torch.as_tensor(_label(y)) for _, y in pairs])


def _pair(item: Any, what: str) -> tuple[Any, Any]:
    if isinstance(item, Mapping):
        return item[first_key(item, IMAGE_KEYS)], item[first_key(item, LABEL_KEYS)]
    if isinstance(item, tuple | list) and len(item) >= 2:
        return item[0], item[1]
    raise MeadaError(f"{what}, got {type(item).__name__}")


def first_key(item: Mapping[str, Any], keys: Sequence[str]) -> str:
    """The first of ``keys`` that ``item`` has."""
    found = next((key for key in keys if key in item), None)
    if found is None:
        raise MeadaError(f"items must have one of the keys {', '.join(keys)}, got {', '.join(map(str, item))}")
    return found


def _image(x: Any) -> Tensor:
    if isinstance(x, Tensor):
        return x
    if hasattr(x, "convert"):  # a PIL image
        return torch.from_numpy(from_pil(x))
    if isinstance(x, np.ndarray):
        return torch.from_numpy(np.require(x, requirements=["C", "W"]))
    raise MeadaError(f"the images of the data set must be tensors, arrays or PIL images, got {type(x).__name__}")


def _label(y: Any) -> Any:
    if isinstance(y, str):
        raise MeadaError(f"labels must be class numbers, got the text '{y[:40]}': number the classes")
    if y is None:
        raise MeadaError("labels must be class numbers, got None")
    return y


def readable(data: Any, *, streams: bool = True) -> Any:
    """Check that ``data`` is a map-style data set or, if ``streams``, an iterable one."""
    if not (streams and (isinstance(data, DataLoader) or _is_stream(data))):
        check_map_style(data, KINDS, "fit visits samples in an order of its own; read it into a Dataset first")
    return data


def check_map_style(data: Any, kinds: str, hint: str, name: str = "data") -> None:
    """Refuse anything but a map-style data set; ``hint`` is added to the message about streams."""
    kind = type(data).__name__
    if _is_stream(data):
        raise MeadaError(
            f"{name} must be a data set with a length and items by number, got {kind}, which is read as a stream "
            f"(IterableDataset): {hint}"
        )
    if isinstance(data, Mapping):
        raise MeadaError(f"{name} must be one data set, got several by name ({', '.join(map(str, data))}): choose one")
    if isinstance(data, Tensor | np.ndarray) or not (hasattr(data, "__getitem__") and hasattr(data, "__len__")):
        raise MeadaError(f"{name} must be {kinds}, got {kind}")
    if len(data) == 0:
        raise MeadaError(f"{name} must hold at least one labelled image, got none")


def _is_stream(data: Any) -> bool:
    return isinstance(data, IterableDataset) or type(data).__name__.startswith("Iterable")


def _warn_unused(loader: DataLoader[Any]) -> None:
    known = (SequentialSampler, RandomSampler, DistributedSampler)
    sampler = getattr(loader.batch_sampler, "sampler", loader.sampler)
    if not isinstance(loader.dataset, IterableDataset) and not isinstance(sampler, known):
        raise MeadaError(
            f"the loader's sampler must visit every sample, got {type(sampler).__name__}, which fit would not follow: "
            "give a Dataset (torch.utils.data.Subset for a part of one)"
        )
    warnings.warn(
        "fit reads the DataLoader's dataset once; the loader's batch size and order are not used "
        "(plan.batch_size and seed set them), and random transforms are drawn once",
        stacklevel=4,
    )
