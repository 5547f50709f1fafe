"""Predictions per image, kept on disk so that two networks can be compared image by image."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from meada.errors import MeadaError
from meada.files import read_bytes, write_bytes
from meada.types import Labels, Logits

PARTS = ("label", "guess", "confidence")
Predictions = dict[str, dict[str, Tensor]]  # PARTS by domain


def per_image(logits: Logits, labels: Labels) -> dict[str, Tensor]:
    """Labels, predicted classes and the probabilities of those.

    >>> made = per_image(torch.tensor([[0.0, 9.0]]), torch.tensor([1]))
    >>> made["guess"], float(made["confidence"]) > 0.99
    (tensor([1], dtype=torch.int16), True)
    """
    confidence, guess = logits.double().softmax(-1).max(-1)
    label, guess = (one.cpu().to(torch.int16) for one in (labels, guess))
    return {"label": label, "guess": guess, "confidence": confidence.cpu().float()}


def save_predictions(path: Path, by_rule: Mapping[str, Predictions], classes: Sequence[str]) -> None:
    """Write one file for all rules and domains, with eight bytes per image."""
    tensors = {
        f"{rule}/{domain}/{part}": value.clone()  # two rules may have chosen the same checkpoint
        for rule, one in by_rule.items()
        for domain, parts in one.items()
        for part, value in parts.items()
    }
    write_bytes(path, save(tensors, {"classes": "\n".join(classes)}))


def load_predictions(path: Path) -> tuple[dict[str, Predictions], tuple[str, ...]]:
    """Predictions by rule, and the names of the classes."""
    by_rule: dict[str, Predictions] = {}
    try:
        read_bytes(path)  # for its checksum
        with safe_open(path, "pt") as file:
            classes = (file.metadata() or {}).get("classes", "")
            for key in sorted(file.keys()):
                rule, _, rest = key.partition("/")
                domain, _, part = rest.rpartition("/")
                domains = by_rule.setdefault(rule, {})
                domains.setdefault(domain, {})[part] = file.get_tensor(key)
    except MeadaError:
        raise
    except Exception as error:  # safetensors raises its own kinds, which it does not export
        raise MeadaError(f"{path} is damaged or holds no predictions: {error}") from None
    for rule, one in by_rule.items():
        for domain, parts in one.items():
            if set(parts) != set(PARTS) or len({len(v) for v in parts.values()}) != 1:
                raise MeadaError(f"{path}: '{rule}/{domain}' must have {', '.join(PARTS)} of one length")
    return by_rule, tuple(classes.split("\n")) if classes else ()
