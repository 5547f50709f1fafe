"""Predict the labels of pictures, with probabilities and the entropy as a measure of uncertainty."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from meada.datasets.pictures.decode import ENDINGS, decode, large_ones_too, upright_rgb
from meada.datasets.pictures.listing import is_picture
from meada.deploy.model import Model
from meada.entropy import bernoulli_entropy, softmax_entropy
from meada.errors import MeadaError
from meada.evaluation import predict
from meada.evaluation.score import refuse_non_finite
from meada.pool import as_float

NONE = "(none)"  # label of a picture without any of several labels
BLOCK = 256  # pictures in memory at once


class Guess(NamedTuple):
    label: str
    probability: float
    entropy: float  # nats, at most log(classes)


@dataclass(frozen=True)
class Prediction:
    """The prediction for a file, or the error of reading it."""

    file: str
    best: tuple[tuple[str, float], ...] = ()  # labels and probabilities, most likely first
    entropy: float = 0.0
    error: str = ""

    @property
    def label(self) -> str:
        return self.best[0][0]

    @property
    def probability(self) -> float:
        return self.best[0][1]

    def line(self, abstain: float | None = None) -> dict[str, Any]:
        """The JSON entry; ``abstain`` is true if the entropy is above this threshold."""
        if self.error:
            return {"file": self.file, "error": self.error}
        entry = {"file": self.file, "label": self.label, "probability": self.probability, "entropy": self.entropy}
        more = {"top": [{"label": label, "probability": p} for label, p in self.best]} if len(self.best) > 1 else {}
        return {**entry, **more, **({} if abstain is None else {"abstain": self.entropy > abstain})}


def predict_files(model: Model, files: Sequence[Path], top: int = 1) -> list[Prediction]:
    """Predictions in the order of ``files``; a file that cannot be read gets an error."""
    blocks = (files[start : start + BLOCK] for start in range(0, len(files), BLOCK))
    return [one for block in blocks for one in _predict_block(model, block, top)]


def guesses(model: Model, pictures: Iterator[Tensor]) -> list[Guess]:
    """Predict images of the model's size in blocks."""
    found: list[Guess] = []
    while block := [image for image, _ in zip(pictures, range(BLOCK), strict=False)]:
        found += [Guess(*best[0], entropy) for best, entropy in ranked(model, torch.stack(block))]
    return found


def ranked(model: Model, images: Tensor, top: int = 1) -> Iterator[tuple[tuple[tuple[str, float], ...], float]]:
    """Labels with probabilities, most likely first, and the entropy of each image.

    Multi-label: the most likely set of labels comes before single labels.
    """
    p, h = probabilities(model, images)
    best = p.topk(min(top, len(model.classes)), dim=-1).indices
    for q, entropy, which in zip(p, h.tolist(), best.tolist(), strict=True):
        single = [(model.classes[k], float(q[k])) for k in which]
        yield tuple([likeliest_set(model, q), *single[: top - 1]] if model.multilabel else single), entropy


def probabilities(model: Model, images: Tensor) -> tuple[Tensor, Tensor]:
    """Class probabilities and entropy in double precision; non-finite logits are an error."""
    logits, n = predict(model.net, images).double(), len(model.classes)
    if logits.ndim != 2 or logits.shape[1] != n:
        raise MeadaError(f"{model.path}: logits must be (N, {n}) for its classes, got {tuple(logits.shape)}")
    refuse_non_finite(logits, "the pictures")
    if model.multilabel:
        return logits.sigmoid(), bernoulli_entropy(logits)
    return logits.softmax(-1), softmax_entropy(logits)


def likeliest_set(model: Model, p: Tensor) -> tuple[str, float]:
    """The most likely set of independent labels, with the probability of exactly this set."""
    names = [name for name, q in zip(model.classes, p.tolist(), strict=True) if q > 0.5]
    return "+".join(names) or NONE, float(torch.maximum(p, 1 - p).prod())


def prepared(pictures: Any, side: int) -> Iterator[Tensor]:
    """Pictures of any kind as images (3, side, side) in [0, 1], resized as in training."""
    if isinstance(pictures, str | Path):
        for path in pictures_in([Path(pictures)]):
            yield _tensor(_decoded(path, side))
    elif isinstance(pictures, Image.Image):
        small = upright_rgb(pictures).resize((side, side), Image.Resampling.BILINEAR)
        yield _tensor(np.ascontiguousarray(np.asarray(small).transpose(2, 0, 1)))
    elif isinstance(pictures, Tensor):
        yield from _resized(pictures, side)
    elif isinstance(pictures, np.ndarray):
        if pictures.ndim not in (3, 4) or pictures.shape[-1] != 3:
            grey = ": grey? use np.stack([image] * 3, -1)" if pictures.ndim == 2 else ""
            raise MeadaError(f"an array must be (H, W, 3) or (N, H, W, 3), got {pictures.shape}{grey}")
        if pictures.dtype.kind not in "uifb":
            raise MeadaError(f"pixels must be uint8 or floats in [0, 1], got {pictures.dtype}")
        channels_first = np.ascontiguousarray(np.moveaxis(pictures, -1, -3), pictures.dtype.newbyteorder("="))
        yield from _resized(torch.from_numpy(channels_first), side)
    elif isinstance(pictures, Sequence):
        for one in pictures:
            yield from prepared(one, side)
    else:
        raise MeadaError(f"pictures must be paths, Pillow images, arrays or tensors, got {type(pictures).__name__}")


def pictures_in(paths: Sequence[Path]) -> list[Path]:
    """Expand folders (recursively) and patterns to the pictures in them; keep files as they are."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*") if is_picture(p))
            if not inside:
                raise MeadaError(f"{path} must hold pictures ({', '.join(ENDINGS)}), got none")
            found += inside
        elif has_magic(str(path)) and not path.exists():
            matches = sorted(Path(match) for match in glob(str(path), recursive=True))
            if not matches:
                raise MeadaError(f"{path} must match files, got none")
            found += pictures_in(matches)
        else:
            found.append(path)
    return found


def _decoded(path: Path, side: int) -> np.ndarray:
    """Decode a regular file; a pipe or device could block forever."""
    if not path.is_file():
        raise MeadaError(f"{path} must be a picture file, got " + ("no file" if path.exists() else "nothing there"))
    try:
        with large_ones_too():
            return decode(path, side, lenient=True)
    except MeadaError as error:
        raise MeadaError(f"{path} {error}") from None


def _resized(images: Tensor, side: int) -> Iterator[Tensor]:
    """Images of another size are resized as Pillow does, with antialiasing."""
    if images.layout != torch.strided or images.is_meta:
        raise MeadaError(f"a tensor must be dense, got {'a meta tensor' if images.is_meta else images.layout}")
    if images.ndim not in (3, 4) or images.shape[-3] != 3 or 0 in images.shape:
        grey = ": grey? use images.repeat_interleave(3, -3)" if images.ndim > 2 and images.shape[-3] == 1 else ""
        raise MeadaError(f"a tensor must be (3, H, W) or (N, 3, H, W), got {tuple(images.shape)}{grey}")
    if images.dtype != torch.uint8 and not images.is_floating_point():
        raise MeadaError(f"pixels must be uint8 or floats in [0, 1], got {images.dtype}")
    for one in images.reshape(-1, *images.shape[-3:]):
        pixels = as_float(one[None].cpu())[0]
        if not (pixels.min() >= 0 and pixels.max() <= 1):
            raise MeadaError(f"pixels must lie in [0, 1], got {float(pixels.min()):g} to {float(pixels.max()):g}")
        if pixels.shape[-2:] != (side, side):
            pixels = torch.nn.functional.interpolate(pixels[None], (side, side), mode="bilinear", antialias=True)[0]
        yield pixels.clamp(0, 1)


def _tensor(pixels: np.ndarray) -> Tensor:
    return as_float(torch.from_numpy(pixels)[None])[0]


def _predict_block(model: Model, files: Sequence[Path], top: int) -> list[Prediction]:
    pixels: dict[int, np.ndarray] = {}
    found: dict[int, Prediction] = {}
    for place, file in enumerate(files):
        try:
            pixels[place] = _decoded(file, model.side)
        except MeadaError as error:
            found[place] = Prediction(str(file), error=str(error).removeprefix(f"{file} "))
    if pixels:
        images = torch.from_numpy(np.stack(list(pixels.values())))
        for place, (best, entropy) in zip(pixels, ranked(model, images, top), strict=True):
            found[place] = Prediction(str(files[place]), best, entropy)
    return [found[place] for place in range(len(files))]
