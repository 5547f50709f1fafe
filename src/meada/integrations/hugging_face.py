"""A mixin for Hugging Face's ``Trainer`` that replaces a share of every training batch by hard views."""

from typing import Any

from torch import Tensor, nn

from meada.errors import MeadaError
from meada.integrations.views import Numbers, harden_batch
from meada.networks.embedding import plain_logits, unwrap


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
            x, y = entry(inputs, "pixel_values"), entry(inputs, "labels")
            views = harden_batch(PixelValues(unwrap(model)), x, y, mean=mean, std=std, share=self.share, **self.views)
            inputs = {**inputs, "pixel_values": views}
        return super().compute_loss(model, inputs, *args, **kwargs)  # type: ignore[misc]


def normalisation(trainer: Any) -> tuple[Numbers, Numbers]:
    """Mean and standard deviation as the trainer's class names them, or as its image processor has them.

    >>> from types import SimpleNamespace
    >>> processor = SimpleNamespace(image_mean=[0.5], image_std=[0.25], do_normalize=True)
    >>> normalisation(SimpleNamespace(image_mean=None, image_std=None, processing_class=processor))
    ([0.5], [0.25])
    """
    if (trainer.image_mean is None) != (trainer.image_std is None):
        raise MeadaError(
            f"image_mean and image_std must both be given, got {trainer.image_mean} and {trainer.image_std}"
        )
    if trainer.image_mean is not None:
        return trainer.image_mean, trainer.image_std
    processor = getattr(trainer, "processing_class", None)
    if getattr(processor, "do_normalize", False):
        return list(processor.image_mean), list(processor.image_std)  # type: ignore[union-attr]
    return 0.0, 1.0


def entry(inputs: dict[str, Any], key: str) -> Any:
    """What a batch has under ``key``."""
    if key not in inputs:
        raise MeadaError(f"a training batch must have pixel_values and labels, got {', '.join(inputs)}")
    return inputs[key]


class PixelValues(nn.Module):
    """A Hugging Face model as a network from images to logits."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.training = model.training

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = plain_logits(self.model(pixel_values=x))
        return logits
