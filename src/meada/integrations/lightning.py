"""A Lightning callback that replaces a share of every training batch by hard views."""

import sys
from typing import Any

from torch import Tensor

from meada.datasets.examples import IMAGE_KEYS, LABEL_KEYS, first_key
from meada.errors import MeadaError
from meada.integrations.views import Numbers, harden_batch
from meada.machine.extras import need

# The trainer and its callbacks must come from one of the two packages that Lightning goes by.
_NAMES = ("lightning.pytorch", "pytorch_lightning")
_lightning = need(*(_NAMES if _NAMES[0] in sys.modules else reversed(_NAMES)), extra="lightning")


class HardViews(_lightning.Callback):  # type: ignore[name-defined, misc]
    """Replace a share of every training batch by hard views.

    ``Trainer(callbacks=[HardViews(mean=..., std=...)])``; a batch is ``(images, labels, ...)`` or a dict.

    Args:
        net: the module's attribute that takes images to logits; by default the module itself.
        mean, std: the normalisation that the pipeline applied; the defaults are for images in [0, 1].
        share: the part of each batch that is replaced.
        options: ``space``, ``k``, ``hardness``, ``beta``, ... of :func:`meada.hard_views`.
    """

    def __init__(
        self, net: str = "", *, mean: Numbers = 0.0, std: Numbers = 1.0, share: float = 0.5, **options: Any
    ) -> None:
        super().__init__()
        self.net, self.options = net, {"mean": mean, "std": std, "share": share, **options}

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        net = pl_module.get_submodule(self.net) if self.net else pl_module
        image, label = places(batch)
        views = harden_batch(net, batch[image], batch[label], **self.options)
        if isinstance(batch, tuple):
            batch[image].copy_(views)  # the step is given this very tuple
        else:
            batch[image] = views


def places(batch: Any) -> tuple[Any, Any]:
    """Keys or indices of the images and the labels in a batch.

    >>> places({"pixel_values": 1, "labels": 2})
    ('pixel_values', 'labels')
    """
    if isinstance(batch, dict):
        return first_key(batch, IMAGE_KEYS), first_key(batch, LABEL_KEYS)
    if isinstance(batch, list | tuple) and len(batch) >= 2 and isinstance(batch[0], Tensor):
        return 0, 1
    raise MeadaError(f"a batch must be (images, labels) or a dict with both, got {type(batch).__name__}")
