"""What a model says of pictures, how sure it is, and how uncertain: the entropy h."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from meada.datasets.pictures.decode import ENDINGS, decode, large_ones_too
from meada.deploy.model import Model
from meada.entropy import softmax_entropy
from meada.errors import MeadaError
from meada.evaluation import predict

BLOCK = 256  # pictures in memory at once


@dataclass(frozen=True)
class Prediction:
    file: str
    label: str = ""
    probability: float = 0.0
    entropy: float = 0.0  # nats; log(classes) is complete ignorance
    error: str = ""  # why there is no prediction

    def line(self) -> dict[str, Any]:
        """For JSON: what there is."""
        if self.error:
            return {"file": self.file, "error": self.error}
        return {name: value for name, value in asdict(self).items() if name != "error"}


def predict_files(model: Model, files: Sequence[Path]) -> list[Prediction]:
    """In the order of ``files``; one that cannot be read has an error in its place."""
    return [one for start in range(0, len(files), BLOCK) for one in _some(model, files[start : start + BLOCK])]


def pictures_in(paths: Sequence[Path]) -> list[Path]:
    """Files as they are; of a folder, all pictures in it and below."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*") if p.suffix.lower() in ENDINGS and p.is_file())
            if not inside:
                raise MeadaError(f"{path} holds no picture ({', '.join(ENDINGS)})")
            found += inside
        else:
            found.append(path)
    return found


def _some(model: Model, files: Sequence[Path]) -> list[Prediction]:
    pixels: dict[int, np.ndarray] = {}
    faults: dict[int, str] = {}
    with large_ones_too():
        for place, file in enumerate(files):
            try:
                pixels[place] = decode(file, model.side, lenient=True)
            except MeadaError as error:
                faults[place] = str(error)
    said = {place: Prediction(str(files[place]), error=why) for place, why in faults.items()}
    if pixels:
        logits = predict(model.net, torch.from_numpy(np.stack(list(pixels.values()))))
        p, label = logits.double().softmax(-1).max(-1)
        h = softmax_entropy(logits.double())
        for row, place in enumerate(pixels):
            said[place] = Prediction(str(files[place]), model.classes[int(label[row])], float(p[row]), float(h[row]))
    return [said[place] for place in range(len(files))]
