"""Score a network on each domain: accuracy and calibration (ECE, NLL, Brier score)."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from meada.datasets.examples import arrays, batches
from meada.errors import MeadaError, NonFiniteError
from meada.images.inputs import check_classes, check_count, check_network
from meada.machine.distributed import World
from meada.networks.bayesian import sharing_samples
from meada.networks.embedding import forward_pass, unwrap
from meada.networks.freezing import frozen
from meada.pool import as_float
from meada.types import Labels, Logits

Scores = dict[str, float | int]


def predict(net: nn.Module, images: Tensor, *, batch_size: int = 256, world: World | None = None) -> Logits:
    """Logits of all images, in eval mode; the network is left as it was.

    Of several processes each takes whole batches, and all of them get all logits.
    """
    if world and world.size > 1:
        return _shared_out(net, images, batch_size, world)
    net = unwrap(net)
    weight = next((p for p in net.parameters() if p.is_floating_point()), torch.empty(0))
    with frozen(net), sharing_samples(net), torch.inference_mode():
        pieces = [forward_pass(net, as_float(x).to(weight)).cpu() for x in images.split(batch_size)]
    return torch.cat(pieces)


def _logits_and_labels(
    net: nn.Module, data: Any, batch_size: int, world: World | None, side: int
) -> tuple[Logits, Labels]:
    """Of all that ``data`` holds; only the logits of it stay in memory."""
    if (pair := arrays(data, side)) is not None:
        _check_some(len(pair[1]))
        return predict(net, pair[0], batch_size=batch_size, world=world), pair[1]
    found = [(predict(net, x, batch_size=batch_size), y.cpu()) for x, y in batches(data, batch_size)]
    _check_some(len(found))
    return torch.cat([logits for logits, _ in found]), torch.cat([y for _, y in found])


def _check_some(n: int) -> None:
    if not n:
        raise MeadaError("data must hold at least one labelled image, got none")


def _shared_out(net: nn.Module, images: Tensor, batch_size: int, world: World) -> Logits:
    batches = torch.arange(len(images)).split(batch_size)
    classes = predict(net, images[:1]).shape[1]
    logits = torch.zeros(len(images), classes, dtype=torch.get_default_dtype())
    for places in world.mine(batches):
        logits[places] = predict(net, images[places], batch_size=batch_size).to(logits)
    return world.all_reduce_sum(logits)  # zeros everywhere else


def refuse_non_finite(logits: Logits, domain: str, step: int | None = None) -> None:
    """NaN has an argmax too, class 0: it is an error, never a score.

    >>> refuse_non_finite(torch.tensor([[0.0, float("nan")]]), "svhn", step=200)
    Traceback (most recent call last):
    meada.errors.NonFiniteError: logits must be finite, got NaN or infinity for 1 of 1 images of 'svhn' at step 200
    """
    wrong = int((~logits.isfinite()).any(-1).sum())
    if wrong:
        when = "" if step is None else f" at step {step}"
        raise NonFiniteError(
            f"logits must be finite, got NaN or infinity for {wrong:,} of {len(logits):,} images of '{domain}'{when}"
        )


def score(logits: Logits, labels: Labels) -> Scores:
    """Accuracy in per cent; ECE, NLL (nats) and Brier score as they are defined.

    >>> score(torch.tensor([[9.0, 0.0], [9.0, 0.0]]), torch.tensor([0, 1]))["accuracy"]
    50.0
    """
    right = int((logits.argmax(-1) == labels).sum())
    return {
        "accuracy": 100 * right / len(labels),
        "n": len(labels),
        "ece": expected_calibration_error(logits, labels),
        "nll": negative_log_likelihood(logits, labels),
        "brier": brier(logits, labels),
    }


def by_severity(logits: Logits, labels: Labels, severities: int) -> dict[str, list[float | int]]:
    """The same scores of each severity, where the images come in ``severities`` equal parts.

    >>> logits = torch.tensor([[9.0, 0.0], [9.0, 0.0]])
    >>> by_severity(logits, torch.tensor([0, 1]), 2)["accuracy"]
    [100.0, 0.0]
    """
    parts = zip(logits.chunk(severities), labels.chunk(severities), strict=True)
    each = [score(*part) for part in parts]
    return {name: [one[name] for one in each] for name in each[0]}


def evaluate(
    net: nn.Module,
    domains: Any,
    *,
    batch_size: int = 256,
    severities: int = 0,
    each: Callable[[str, Logits, Labels], None] = lambda *_: None,
    world: World | None = None,
    step: int | None = None,
    side: int = 224,
) -> dict[str, Any]:
    """Score a network on each domain: accuracy (%), number of images, ECE, NLL (nats) and Brier score.

    ``{name: data}`` gives ``{name: {"accuracy", "n", "ece", "nll", "brier"}}``; data without a name gives its scores.
    Data is ``(images, labels)``, a ``Dataset``, a ``DataLoader``, a Hugging Face dataset or the path of a folder
    ``CLASS/*.jpg`` (resized to ``side``; classes in the order of their names), read a batch at a time. Images are
    floats in [0, 1] or uint8.

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
            logits, labels = _logits_and_labels(net, data, batch_size, world, side)
            check_classes(labels, logits.shape[1])
        except MeadaError as error:
            raise type(error)(f"domain '{name}': {error}") from error
        refuse_non_finite(logits, name, step)
        each(name, logits, labels)
        results[name] = dict(score(logits, labels))
        if severities:
            results[name]["by_severity"] = by_severity(logits, labels, severities)
    return results


def negative_log_likelihood(logits: Logits, labels: Labels) -> float:
    return float(cross_entropy(logits.double(), labels))


def brier(logits: Logits, labels: Labels) -> float:
    """Mean squared distance of the prediction from the truth, summed over classes.

    >>> brier(torch.zeros(1, 2), torch.tensor([0]))
    0.5
    """
    p = logits.double().softmax(-1)
    return float((p - one_hot(labels, p.shape[-1])).square().sum(-1).mean())


def expected_calibration_error(logits: Logits, labels: Labels, bins: int = 15) -> float:
    """Mean gap of confidence and accuracy over equally wide bins of confidence, in [0, 1].

    >>> logits = torch.tensor([[0.0, 0.0], [0.0, 0.0]])  # half sure of class 0, right half the time
    >>> expected_calibration_error(logits, torch.tensor([0, 1]))
    0.0
    """
    confidence, guess = logits.double().softmax(-1).max(-1)
    right = (guess == labels).double()
    # Bins are (a, b]: a confidence of exactly 1 falls into the last one.
    which = (confidence * bins).ceil().long().clamp(1, bins) - 1
    gap = torch.zeros(bins, dtype=torch.float64).index_add_(0, which, confidence - right)
    return float(gap.abs().sum() / len(labels))
