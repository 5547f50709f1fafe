"""Score all candidates and an existing model on the same pixels: held-out pictures, changes of them, the tests."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor, nn
from torch.nn.functional import interpolate

from meada.corruptions import CORRUPTIONS, corrupt
from meada.datasets import Samples, Task
from meada.deploy.model import open_model
from meada.errors import MeadaError
from meada.evaluation import score
from meada.evaluation.score import finite_logits
from meada.evaluation.selection import fixed_subset, subset_positions
from meada.evaluation.validation_shifts import shifted_once, validation_families
from meada.files import write_bytes
from meada.machine.terminal import Count
from meada.pool import as_float
from meada.robustify.labels import Truth, as_classes, right
from meada.runs.checkpoint import read_tensors
from meada.types import Families, Family, Images, Labels, Logits

BATCH = 64
SHIFTED = "robustness"  # name of the random subset of held-out pictures that is scored under shifts
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
    some = fixed_subset(SHIFTED, held_out, shifted_n)
    made: dict[str, Make] = {"held_out": lambda: (held_out.images, held_out.labels)}
    for name in CORRUPTIONS:
        made[f"corruption/{name}"] = lambda name=name: (corrupted(some.images, name, severities, seed), some.labels)  # type: ignore[misc]
    shifted = lambda family: shifted_once(as_float(some.images), [family], seed=seed)[family]
    for family in validation_families(trained):
        made[f"shift/{family}"] = lambda family=family: (shifted(family), some.labels)  # type: ignore[misc]
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
        if not path.is_file():
            images, labels = make()
            logits = {f"logits/{k}": finite_logits(net, images, name, batch_size=BATCH) for k, net in nets.items()}
            write_bytes(path, save({"labels": labels.clone(), **{k: one.contiguous() for k, one in logits.items()}}))
    tell(len(made), len(made))


class Scores:
    """Saved logits and labels, by set and candidate."""

    def __init__(self, folder: Path, names: Sequence[str], candidates: Sequence[str]) -> None:
        self.names, self.candidates = tuple(names), tuple(candidates)
        self._held = {name: read_tensors(folder / f"{name.replace('/', '.')}.safetensors") for name in names}

    def labels(self, *names: str) -> Truth:
        """Of one set, or of several after each other."""
        return torch.cat([self._held[name]["labels"] for name in names])

    def logits(self, candidate: str, *names: str) -> Logits:
        return torch.cat([self._held[name][f"logits/{candidate}"] for name in names])

    def correct(self, candidate: str, names: Sequence[str]) -> np.ndarray:
        """1 for a correct prediction, else 0 (multi-label: share of correct labels), of shape (rows, pictures).

        The rows are shifts of the same pictures.
        """
        return np.stack([right(self.logits(candidate, name), self.labels(name)).numpy() for name in names])

    def positions(self, name: str) -> Tensor:
        """Of the pictures of a set of held-out pictures, among all held-out ones."""
        total, n = len(self.labels("held_out")), len(self.labels(name))
        return torch.arange(n) if n == total else subset_positions(SHIFTED, total, n)

    def group(self, prefix: str) -> list[str]:
        return [name for name in self.names if name.startswith(prefix)]

    def of(self, candidate: str, temperature: float = 1.0) -> dict[str, Any]:
        """The entry of a candidate in ``outcome.json``."""
        one = lambda name: full_score(self.logits(candidate, name) / temperature, self.labels(name))
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
    found, each = score(*as_classes(logits, labels)), [(logits, labels)]
    if labels.ndim == 2:
        found |= {"n": len(labels), "exact_match": 100 * float((right(logits, labels) == 1).double().mean())}
        each = [as_classes(logits[:, [k]], labels[:, [k]]) for k in range(labels.shape[1])]
    found["balanced_accuracy"] = float(np.mean([balanced(*one) for one in each]))
    two = [(z[:, 1] - z[:, 0], y) for z, y in each if z.shape[1] == 2 and len(y.unique()) == 2]
    both = [auc(margin.double().numpy(), y.numpy()) for margin, y in two]
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
    return [name for name in names if name.startswith(("corruption/", "shift/")) and family_of(name) not in trained]


def family_of(row: str) -> str:
    """
    >>> family_of("corruption/fog"), family_of("shift/noise")
    ('weather', 'noise')
    """
    kind, _, name = row.partition("/")
    return FAMILY_OF[name] if kind == "corruption" else name


class Fitted(nn.Module):
    """Resize pictures to the size of the network and reorder its logits."""

    def __init__(self, net: nn.Module, side: int, order: list[int]) -> None:
        super().__init__()
        self.net, self.side, self.order = net, side, order

    def forward(self, x: Images) -> Logits:
        if x.shape[-1] != self.side:
            x = interpolate(x, size=(self.side, self.side), mode="bilinear", antialias=True)
        logits: Tensor = self.net(x)
        return logits[:, self.order]


def fitted(path: str, task: Task, trust: Sequence[str] = ()) -> nn.Module:
    """The model at ``path``, with the logits of the task's classes; other classes that it knows are dropped."""
    model, classes = open_model(Path(path), trust), task.classes
    if model.multilabel != task.multilabel:
        kinds = ("one label per picture", "several labels per picture")
        raise MeadaError(f"--model must be of {kinds[task.multilabel]}, got one of {kinds[model.multilabel]}: {path}")
    missing = [name for name in classes if name not in model.classes]
    if missing:
        raise MeadaError(f"--model must have all classes of the data, got none for '{missing[0]}' in {path}")
    return Fitted(model.net, model.side, [model.classes.index(name) for name in classes]).eval()
