"""Replace a share of a batch, of every batch of a loader, or of those of Hugging Face's ``Trainer`` by hard views."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from meada.errors import MeadaError
from meada.images.inputs import as_labels, in_unit_range
from meada.maximise import hard_views
from meada.networks.embedding import plain_logits, unwrap
from meada.networks.normalise import Normalise, with_normalisation

Numbers = float | Sequence[float]


def harden_batch(
    net: nn.Module, x: Tensor, y: Tensor, *, mean: Numbers = 0.0, std: Numbers = 1.0, share: float = 0.5, **options: Any
) -> Tensor:
    """The batch with the first ``share`` of its images replaced by hard views of them.

    Args:
        net: the network that takes ``x``, in the precision and on the device of ``x``; it is left as it was.
        mean, std: the normalisation that the pipeline applied to ``x``: it is undone for the views and applied
            again. The defaults are for images in [0, 1].
        share: of the batch; the loader's shuffling makes it a random part.
        options: ``space``, ``k``, ``hardness``, ``beta``, ... of :func:`meada.hard_views`.

    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(12, 2))
    >>> x, y = torch.rand(4, 3, 2, 2), torch.tensor([0, 1, 0, 1])
    >>> changed = harden_batch(net, x, y, share=0.5)
    >>> bool((changed[2:] == x[2:]).all()), bool((changed[:2] == x[:2]).all())
    (True, False)
    """
    if not 0 <= share <= 1:
        raise MeadaError(f"share must be from 0 to 1, got {share}")
    count = round(share * len(x))
    if count == 0:
        return x
    layer = Normalise(mean, std).to(x.device, x.dtype)
    with torch.no_grad():
        pixels = _pixels(x[:count].detach() * layer.std + layer.mean, mean, std)
        labels = as_labels(y, len(x))[:count]
        views = hard_views(with_normalisation(net, mean, std), pixels, labels, **options)
        return torch.cat([layer(views).to(x.dtype), x[count:]])


def hardened(loader: Iterable[Any], net: nn.Module, **options: Any) -> Iterator[Any]:
    """The batches ``(images, labels, ...)`` of a loader, with a share of the images replaced by hard views.

    ``options`` are those of :func:`harden_batch`. The views are made when the batch is asked for, with the
    network as it then is.

    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(12, 2))
    >>> loader = [(torch.rand(4, 3, 2, 2), torch.tensor([0, 1, 0, 1]))] * 2
    >>> [tuple(x.shape) for x, y in hardened(loader, net)]
    [(4, 3, 2, 2), (4, 3, 2, 2)]
    """
    where = next((p.device for p in net.parameters()), torch.device("cpu"))
    for x, y, *more in loader:
        x, y = x.to(where, non_blocking=True), y.to(where, non_blocking=True)
        yield (harden_batch(net, x, y, **options), y, *more)


def _pixels(x: Tensor, mean: Numbers, std: Numbers) -> Tensor:
    try:
        return in_unit_range(x)
    except MeadaError as error:
        raise MeadaError(
            f"mean and std must be those that the pipeline applied, got mean={mean}, std={std}, with which {error}"
        ) from error


class HardViewsMixin:
    """Replace a share of every training batch by hard views; evaluation is left alone.

    ``class MyTrainer(HardViewsMixin, Trainer): image_mean, image_std = processor.image_mean, processor.image_std``.
    ``image_mean`` and ``image_std`` are what the pictures were normalised with; by default they are those of the
    image processor that the trainer was given (``processing_class=processor``), or none. ``share`` is the part of
    each batch that is replaced; ``views`` are options of :func:`meada.hard_views`.
    """

    image_mean: Numbers | None = None
    image_std: Numbers | None = None
    share: float = 0.5
    views: dict[str, Any] = {}

    def compute_loss(self, model: nn.Module, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        if model.training:
            mean, std = normalisation(self)
            if not {"pixel_values", "labels"} <= set(inputs):
                raise MeadaError(f"a training batch must have pixel_values and labels, got {', '.join(inputs)}")
            net, x, y = PixelValues(unwrap(model)), inputs["pixel_values"], inputs["labels"]
            views = harden_batch(net, x, y, mean=mean, std=std, share=self.share, **self.views)
            inputs = {**inputs, "pixel_values": views}
        return super().compute_loss(model, inputs, *args, **kwargs)  # type: ignore[misc]


def normalisation(trainer: Any) -> tuple[Numbers, Numbers]:
    """Mean and standard deviation from the trainer's class or from its image processor.

    >>> from types import SimpleNamespace
    >>> processor = SimpleNamespace(image_mean=[0.5], image_std=[0.25], do_normalize=True)
    >>> normalisation(SimpleNamespace(image_mean=None, image_std=None, processing_class=processor))
    ([0.5], [0.25])
    """
    mean, std = trainer.image_mean, trainer.image_std
    if (mean is None) != (std is None):
        raise MeadaError(f"image_mean and image_std must both be given, got {mean} and {std}")
    if mean is not None:
        return mean, std
    processor = getattr(trainer, "processing_class", None)
    if getattr(processor, "do_normalize", False):
        return list(processor.image_mean), list(processor.image_std)  # type: ignore[union-attr]
    return 0.0, 1.0


class PixelValues(nn.Module):
    """Wrap a Hugging Face model as a network from images to logits."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.training = model.training

    def forward(self, x: Tensor) -> Tensor:
        return plain_logits(self.model(pixel_values=x))
