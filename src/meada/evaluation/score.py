"""Score a network on each domain: accuracy and calibration (ECE, NLL, Brier score)."""

from array import array
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import nll_loss, one_hot

from meada.datasets.examples import arrays, batches
from meada.errors import MeadaError, NonFiniteError, check_count
from meada.images.inputs import check_classes, check_network
from meada.machine.distributed import World
from meada.networks.bayesian import sharing_samples
from meada.networks.embedding import forward_pass, unwrap
from meada.networks.freezing import frozen
from meada.pool import as_float
from meada.types import Labels, Logits, PerSample

Scores = dict[str, float | int]
BLOCK = 4096  # images whose probabilities are computed at once


def predict(net: nn.Module, images: Tensor, *, batch_size: int = 256, world: World | None = None) -> Logits:
    """Logits of all images in eval mode; the network's mode is restored.

    Of several processes each takes whole batches, and all of them get all logits.
    """
    if world and world.size > 1:
        return _shared_out(net, images, batch_size, world)
    net = unwrap(net)
    with frozen(net), sharing_samples(net):
        return torch.cat([_logits(net, x) for x in images.split(batch_size)])


def _logits(net: nn.Module, x: Tensor) -> Logits:
    weight = next((p for p in net.parameters() if p.is_floating_point()), torch.empty(0))
    with torch.inference_mode():
        return forward_pass(net, as_float(x).to(weight)).cpu()


def _outputs(
    net: nn.Module, data: Any, size: int, world: World | None, side: int | None
) -> Generator[tuple[Logits, Labels], None, None]:
    """Yield logits and labels of batches of ``size``, without keeping them in memory."""
    classes, own_side = _of_model(net)
    pair = arrays(data, own_side if side is None else side, classes)
    if world and world.size > 1 and pair is not None:
        logits = predict(net, pair[0], batch_size=size, world=world)
        yield from zip(logits.split(size), pair[1].split(size), strict=True)
        return
    net = unwrap(net)
    with frozen(net), sharing_samples(net):
        for x, y in batches(pair or data, size):
            for part, truth in zip(x.split(size), y.cpu().split(size), strict=True):
                yield _logits(net, part), truth


def _of_model(net: nn.Module) -> tuple[tuple[str, ...] | None, int]:
    """Class names and picture size of a model of ``meada.load``; of another network none and 224."""
    model = unwrap(net)
    classes, side = getattr(model, "classes", None), getattr(model, "side", None)
    if not isinstance(classes, tuple) or not isinstance(side, int):
        return None, 224
    if getattr(model, "multilabel", False):
        raise MeadaError(
            "net must have one label per picture, got a model of several: meada evaluate scores it by its folder"
        )
    return classes, side


def _shared_out(net: nn.Module, images: Tensor, batch_size: int, world: World) -> Logits:
    batches = torch.arange(len(images)).split(batch_size)
    classes = predict(net, images[:1]).shape[1]
    logits = torch.zeros(len(images), classes, dtype=torch.get_default_dtype())
    for places in world.mine(batches):
        logits[places] = predict(net, images[places], batch_size=batch_size).to(logits)
    return world.all_reduce_sum(logits)  # zeros everywhere else


def finite_logits(net: nn.Module, images: Tensor, domain: str, *, batch_size: int = 256) -> Logits:
    logits = predict(net, images, batch_size=batch_size)
    refuse_non_finite(logits, domain)
    return logits


def refuse_non_finite(logits: Logits, domain: str) -> None:
    """Raise an error for NaN or infinite logits, whose argmax would be scored as class 0."""
    _refuse(_non_finite(logits), len(logits), domain)


def _non_finite(logits: Logits) -> int:
    return int((~logits.isfinite()).any(-1).sum())


def _refuse(wrong: int, n: int, domain: str, step: int | None = None) -> None:
    if wrong:
        when = "" if step is None else f" at step {step}"
        raise NonFiniteError(
            f"logits must be finite, got NaN or infinity for {wrong:,} of {n:,} images of '{domain}'{when}"
        )


class PerImage:
    """Five numbers per image from which scores are computed; memory is independent of the number of classes.

    They lie in one block that grows. One small tensor per batch would stay in the gaps that batches of images leave
    behind, and the allocator could use none of these gaps for the next batch.
    """

    def __init__(self) -> None:
        self.rows, self.wrong = array("d"), 0

    def __len__(self) -> int:
        return len(self.rows) // 5

    def add(self, logits: Logits, labels: Labels) -> None:
        wide = logits.double()
        p, right = wide.softmax(-1), (logits.argmax(-1) == labels).double()
        confidence, guess = p.max(-1)
        log_likelihood = wide.log_softmax(-1).gather(1, labels[:, None])[:, 0]
        distance = (p - one_hot(labels, p.shape[-1])).square().sum(-1)
        each = (right, confidence, (guess == labels).double(), log_likelihood, distance)
        self.rows.frombytes(torch.stack(each, 1).numpy().tobytes())
        self.wrong += _non_finite(logits)

    def scores(self) -> Scores:
        rows = torch.frombuffer(self.rows, dtype=torch.float64).view(-1, 5)
        right, confidence, hit, log_likelihood, distance = rows.T.contiguous()
        return {
            "accuracy": 100 * int(right.sum()) / len(rows),
            "n": len(rows),
            "ece": calibration_gap(confidence, hit),
            # nll_loss adds in the order of cross_entropy: the same bits as of all classes at once
            "nll": float(nll_loss(log_likelihood[:, None], torch.zeros(len(rows), dtype=torch.long))),
            "brier": float(distance.mean()),
        }


def score(logits: Logits, labels: Labels) -> Scores:
    """Accuracy in per cent, ECE, NLL (nats) and Brier score.

    >>> score(torch.tensor([[9.0, 0.0], [9.0, 0.0]]), torch.tensor([0, 1]))["accuracy"]
    50.0
    """
    found = PerImage()
    for part, y in zip(logits.split(BLOCK), labels.split(BLOCK), strict=True):
        found.add(part, y)
    return found.scores()


def by_severity(logits: Logits, labels: Labels, severities: int) -> dict[str, list[float | int]]:
    """Scores by severity, for images in ``severities`` equal parts.

    >>> logits = torch.tensor([[9.0, 0.0], [9.0, 0.0]])
    >>> by_severity(logits, torch.tensor([0, 1]), 2)["accuracy"]
    [100.0, 0.0]
    """
    parts = zip(logits.chunk(severities), labels.chunk(severities), strict=True)
    each = [score(*part) for part in parts]
    return {name: [one[name] for one in each] for name in each[0]}


def evaluate(
    net: nn.Module, domains: Any, *, batch_size: int = 256, severities: int = 0,
    each: Callable[[str, Logits, Labels], None] | None = None,
    world: World | None = None, step: int | None = None, side: int | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Score a network on each domain: accuracy (%), number of images, ECE, NLL (nats) and Brier score.

    ``{name: data}`` gives ``{name: {"accuracy", "n", "ece", "nll", "brier"}}``; data without a name gives its scores.
    Data is ``(images, labels)``, a ``Dataset``, a ``DataLoader``, a Hugging Face dataset or the path of a folder
    ``CLASS/*.jpg``, read a batch at a time. Images are floats in [0, 1] or uint8. The pictures of a folder are resized
    to ``side`` (default: that of a model of ``meada.load``, else 224), and its classes are numbered as those of the
    model, or else in the order of their names.

    Where every domain is a corruption, its ``severities`` in equal parts one after the other, each has
    its scores by severity too. ``each`` is handed the logits that a domain's scores come from. Logits
    that are not finite are an error, which names the domain and, if it is given, the training ``step``.
    """
    check_network(net)
    if not isinstance(domains, Mapping):
        return evaluate(net, {"data": domains}, batch_size=batch_size, each=each, world=world, side=side)["data"]
    if not domains:
        raise MeadaError("domains must name at least one set of data, got none")
    check_count("batch_size", batch_size, least=1)
    results: dict[str, dict[str, Any]] = {}
    for name, data in domains.items():
        try:
            found, kept = _scored(net, data, batch_size, world, side, keep=bool(each or severities))
        except MeadaError as error:
            raise type(error)(f"domain '{name}': {error}") from error
        _refuse(found.wrong, len(found), name, step)
        if each:
            each(name, *kept)
        results[name] = dict(found.scores())
        if severities:
            results[name]["by_severity"] = by_severity(kept[0], kept[1], severities)
    return results


def _scored(
    net: nn.Module, data: Any, batch_size: int, world: World | None, side: int | None, *, keep: bool
) -> tuple[PerImage, list[Tensor]]:
    """Numbers per image for the scores, and all logits and labels if they are kept."""
    found, kept = PerImage(), list[tuple[Logits, Labels]]()
    with closing(_outputs(net, data, batch_size, world, side)) as outputs:  # the network is left as it was
        for logits, labels in outputs:
            check_classes(labels, logits.shape[1])
            found.add(logits, labels)
            kept.extend([(logits, labels)] if keep else [])
    if not len(found):
        raise MeadaError("data must hold at least one labelled image, got none")
    return found, [torch.cat(parts) for parts in zip(*kept, strict=True)]


def calibration_gap(confidence: PerSample, right: PerSample, bins: int = 15) -> float:
    """ECE: the mean gap of confidence and accuracy over equally wide bins of confidence, in [0, 1]."""
    # Bins are (a, b]: a confidence of exactly 1 falls into the last one.
    which = (confidence * bins).ceil().long().clamp(1, bins) - 1
    gap = torch.zeros(bins, dtype=torch.float64).index_add_(0, which, confidence - right)
    return float(gap.abs().sum() / len(right))
