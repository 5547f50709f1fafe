"""Score all candidates on the same pixels: held-out pictures, corruptions and shifts of them, and the tests."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor, nn

from meada.corruptions import CORRUPTIONS, corrupt
from meada.datasets import Samples
from meada.evaluation import score
from meada.evaluation.score import finite_logits
from meada.evaluation.selection import fixed_subset
from meada.evaluation.validation_shifts import shifted_once, validation_families
from meada.files import write_bytes
from meada.machine.terminal import Count
from meada.pool import as_float
from meada.robustify.labels import Truth, as_classes, right
from meada.runs.checkpoint import read_tensors
from meada.types import Families, Family, Labels, Logits

BATCH = 64
# The family of each corruption, so that the rule can leave out families that a candidate was trained on.
FAMILY_OF: dict[str, Family] = dict(
    gaussian_noise="noise", shot_noise="noise", impulse_noise="noise",
    defocus_blur="blur", glass_blur="blur", motion_blur="blur", zoom_blur="blur",
    snow="weather", frost="weather", fog="weather", brightness="tone", contrast="tone",
    elastic_transform="geometry", pixelate="compression", jpeg_compression="compression",
)  # fmt: skip
Make = Callable[[], tuple[Tensor, Truth]]


def sets(held_out: Samples, tests: Mapping[str, Samples], *, trained: Families, shifted_n: int,
         severities: Sequence[int], seed: int) -> dict[str, Make]:  # fmt: skip
    """What is scored, by name, as functions; shifts only of families that no candidate was trained on."""
    some = fixed_subset("robustness", held_out, shifted_n)
    made: dict[str, Make] = {"held_out": lambda: (held_out.images, held_out.labels)}
    for name in CORRUPTIONS:
        made[f"corruption/{name}"] = lambda name=name: (corrupted(some.images, name, severities, seed), some.labels)  # type: ignore[misc]
    for family in validation_families(trained):
        made[f"shift/{family}"] = lambda family=family: (
            shifted_once(as_float(some.images), [family], seed=seed)[family],
            some.labels,
        )  # type: ignore[misc]
    for name, one in tests.items():
        made[f"test/{name}"] = lambda one=one: (one.images, one.labels)  # type: ignore[misc]
    return made


def corrupted(images: Tensor, name: str, severities: Sequence[int], seed: int) -> Tensor:
    """Apply a corruption, alternating the severities over the pictures."""
    out = torch.empty_like(images)
    for place, severity in enumerate(severities):
        index = torch.arange(place, len(images), len(severities))
        if len(index):
            out[index] = corrupt(images[index], name, severity, seed=seed, index=index.numpy())
    return out


def score_all(nets: Mapping[str, nn.Module], made: Mapping[str, Make], folder: Path, tell: Count) -> None:
    """Write the logits of every candidate, one file per set; existing files are kept."""
    for number, (name, make) in enumerate(made.items()):
        tell(number, len(made))
        path = folder / f"{name.replace('/', '.')}.safetensors"
        if path.is_file():
            continue
        images, labels = make()
        held = {f"logits/{candidate}": _logits(net, images, name) for candidate, net in nets.items()}
        write_bytes(path, save({"labels": labels.clone(), **held}))
    tell(len(made), len(made))


def _logits(net: nn.Module, images: Tensor, name: str) -> Logits:
    return finite_logits(net, images, name, batch_size=BATCH).contiguous()


class Scores:
    """Saved logits and labels, by set and candidate."""

    def __init__(self, folder: Path, names: Sequence[str], candidates: Sequence[str]) -> None:
        self.names, self.candidates = tuple(names), tuple(candidates)
        self._held = {name: read_tensors(folder / f"{name.replace('/', '.')}.safetensors") for name in names}

    def labels(self, name: str) -> Truth:
        return self._held[name]["labels"]

    def logits(self, candidate: str, name: str) -> Logits:
        return self._held[name][f"logits/{candidate}"]

    def correct(self, candidate: str, names: Sequence[str]) -> np.ndarray:
        """1 for a correct prediction, else 0 (multi-label: share of correct labels), of shape (rows, pictures).

        The rows are shifts of the same pictures.
        """
        return np.stack([right(self.logits(candidate, name), self.labels(name)).numpy() for name in names])

    def group(self, prefix: str) -> list[str]:
        return [name for name in self.names if name.startswith(prefix)]

    def of(self, candidate: str) -> dict[str, Any]:
        """The entry of a candidate in ``outcome.json``."""
        one = lambda name: full_score(self.logits(candidate, name), self.labels(name))
        corruptions = {name.split("/")[1]: one(name) for name in self.group("corruption/")}
        shifts = {name.split("/", 1)[1]: one(name) for name in self.group("shift/")}
        return {
            "held_out": one("held_out"),
            "corruptions": {**_mean(corruptions), "by_name": corruptions},
            "validation_shifts": {**_mean(shifts), "families": sorted(shifts), "by_name": shifts},
            "tests": {name.split("/", 1)[1]: one(name) for name in self.group("test/")},
        }


def full_score(logits: Logits, labels: Truth) -> dict[str, float | int]:
    """Accuracy and balanced accuracy (%), ECE, NLL and Brier score; AUC if there are two classes and both occur.

    Multi-label: accuracy is the share of correct labels, ``exact_match`` the share of pictures whose labels are all
    correct; balanced accuracy and AUC are means over the labels; ECE, NLL and Brier score are per label.
    """
    if labels.ndim == 1:
        found = score(logits, labels)
        found["balanced_accuracy"] = balanced(logits, labels)
        if logits.shape[1] == 2 and len(labels.unique()) == 2:
            found["auc"] = auc((logits[:, 1] - logits[:, 0]).double().numpy(), labels.numpy())
        return found
    found = score(*as_classes(logits, labels))
    each = [as_classes(logits[:, [k]], labels[:, [k]]) for k in range(labels.shape[1])]
    found |= {"n": len(labels), "exact_match": 100 * float((right(logits, labels) == 1).double().mean())}
    found["balanced_accuracy"] = float(np.mean([balanced(*one) for one in each]))
    both = [auc(one[:, 1].double().numpy(), y.numpy()) for one, y in each if len(y.unique()) == 2]
    return found | ({"auc": float(np.mean(both))} if both else {})


def balanced(logits: Logits, labels: Labels) -> float:
    """Mean over the classes of their accuracy (%)."""
    correct = right(logits, labels)
    return 100 * float(torch.stack([correct[labels == k].mean() for k in labels.unique()]).mean())


def auc(margin: np.ndarray, labels: np.ndarray) -> float:
    """Probability that a picture of class 1 is ranked above one of class 0; ties count half.

    >>> auc(np.array([0.1, 0.4, 0.4, 0.9]), np.array([0, 0, 1, 1]))
    0.875
    """
    from scipy.stats import rankdata  # slow to import

    ranks, ones = rankdata(margin), labels == 1
    n1, n0 = int(ones.sum()), int((~ones).sum())
    return float((ranks[ones].sum() - n1 * (n1 + 1) / 2) / (n1 * n0))


def _mean(scores: Mapping[str, Mapping[str, float | int]]) -> dict[str, float | int]:
    """Mean over corruptions or shifts of the same pictures; n is the number of pictures."""
    if not scores:
        return {"mean": 0.0, "n": 0}
    first = next(iter(scores.values()))
    found: dict[str, float | int] = {k: sum(float(s[k]) for s in scores.values()) / len(scores) for k in first}
    return {"mean": found.pop("accuracy"), **found, "n": int(first["n"])}


def rule_rows(names: Sequence[str], trained: Families) -> list[str]:
    """Corruptions and validation shifts of families that no candidate was trained on.

    >>> rule_rows(["held_out", "corruption/fog", "corruption/contrast", "test/sketch"], frozenset({"tone"}))
    ['corruption/fog']
    """
    kind = lambda name: FAMILY_OF[name.split("/")[1]] if name.startswith("corruption/") else name.split("/")[-1]
    return [name for name in names if name.startswith(("corruption/", "shift/")) and kind(name) not in trained]
