"""How well a network does on each domain: accuracy, and whether its confidence can be believed."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from meada.errors import MeadaError, NonFiniteError
from meada.evaluation.calibration import brier, expected_calibration_error, negative_log_likelihood
from meada.machine.distributed import World
from meada.networks.bayesian import sharing_samples
from meada.networks.embedding import unwrap
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
    device = next((p.device for p in net.parameters()), torch.device("cpu"))
    with frozen(net), sharing_samples(net), torch.inference_mode():
        pieces = [net(as_float(x).to(device)).cpu() for x in images.split(batch_size)]
    return torch.cat(pieces)


def _shared_out(net: nn.Module, images: Tensor, batch_size: int, world: World) -> Logits:
    batches = torch.arange(len(images)).split(batch_size)
    classes = predict(net, images[:1]).shape[1]
    logits = torch.zeros(len(images), classes, dtype=torch.get_default_dtype())
    for places in world.mine(batches):
        logits[places] = predict(net, images[places], batch_size=batch_size).to(logits)
    return world.total(logits)  # zeros everywhere else


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
    """The same scores of each severity, where the images come in so many equal parts.

    >>> logits = torch.tensor([[9.0, 0.0], [9.0, 0.0]])
    >>> by_severity(logits, torch.tensor([0, 1]), 2)["accuracy"]
    [100.0, 0.0]
    """
    parts = zip(logits.chunk(severities), labels.chunk(severities), strict=True)
    each = [score(*part) for part in parts]
    return {name: [one[name] for one in each] for name in each[0]}


def evaluate(
    net: nn.Module,
    domains: Mapping[str, tuple[Tensor, Labels]],
    *,
    batch_size: int = 256,
    severities: int = 0,
    each: Callable[[str, Logits, Labels], None] = lambda *_: None,
    world: World | None = None,
    step: int | None = None,
) -> dict[str, dict[str, Any]]:
    """``{name: (images, labels)}`` to ``{name: {"accuracy", "n", "ece", "nll", "brier"}}``.

    Images are floats in [0, 1] or 8 bits. Where every domain is a corruption, its ``severities`` in
    equal parts one after the other, each has its scores by severity too. ``each`` is handed the
    logits that a domain's scores come from. Logits that are not finite are an error, which names
    the domain and, if it is given, the training ``step``.
    """
    results: dict[str, dict[str, Any]] = {}
    for name, (images, labels) in domains.items():
        if len(labels) == 0 or len(images) != len(labels):
            raise MeadaError(
                f"domain '{name}' has {len(images)} images and {len(labels)} labels: "
                "as many of one as of the other, and at least one, are needed"
            )
        logits = predict(net, images, batch_size=batch_size, world=world)
        if int(labels.max()) >= logits.shape[1] or int(labels.min()) < 0:
            raise MeadaError(
                f"domain '{name}' has labels from {int(labels.min())} to {int(labels.max())}: "
                f"the network knows the classes 0 to {logits.shape[1] - 1}"
            )
        refuse_non_finite(logits, name, step)
        each(name, logits, labels)
        results[name] = dict(score(logits, labels))
        if severities:
            results[name]["by_severity"] = by_severity(logits, labels, severities)
    return results
