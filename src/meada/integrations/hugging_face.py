"""A mixin for Hugging Face's ``Trainer`` that replaces a share of every training batch by hard views."""

from typing import Any

from torch import Tensor, nn

from meada.integrations.views import Numbers, harden_batch
from meada.networks.embedding import plain_logits, unwrap


class HardViewsMixin:
    """Replace a share of every training batch by hard views; evaluation is left alone.

    ``class MyTrainer(HardViewsMixin, Trainer): image_mean, image_std = processor.image_mean, processor.image_std``.
    ``image_mean`` and ``image_std`` are what the image processor normalised with; ``share`` is the part of each
    batch that is replaced; ``views`` are options of :func:`meada.hard_views`.
    """

    image_mean: Numbers = 0.0
    image_std: Numbers = 1.0
    share: float = 0.5
    views: dict[str, Any] = {}

    def compute_loss(self, model: nn.Module, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        if model.training:
            views = harden_batch(
                PixelValues(unwrap(model)), inputs["pixel_values"], inputs["labels"],
                mean=self.image_mean, std=self.image_std, share=self.share, **self.views,
            )  # fmt: skip
            inputs = {**inputs, "pixel_values": views}
        return super().compute_loss(model, inputs, *args, **kwargs)  # type: ignore[misc]


class PixelValues(nn.Module):
    """A Hugging Face model as a network from images to logits."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.training = model.training

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = plain_logits(self.model(pixel_values=x))
        return logits
