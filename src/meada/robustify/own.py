"""Score an existing model next to the candidates; its picture size and class order may differ."""

from collections.abc import Sequence
from pathlib import Path

from torch import Tensor, nn
from torch.nn.functional import interpolate

from meada.datasets import Task
from meada.deploy.model import open_model
from meada.errors import MeadaError
from meada.types import Images, Logits


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
        raise MeadaError(f"--model must know all classes of the data, got none for '{missing[0]}' in {path}")
    return Fitted(model.net, model.side, [model.classes.index(name) for name in classes]).eval()
