"""A model of one's own as a candidate: its size of pictures and its order of classes may differ."""

from collections.abc import Sequence
from pathlib import Path

from torch import Tensor, nn
from torch.nn.functional import interpolate

from meada.datasets import Task
from meada.deploy.model import open_model
from meada.errors import MeadaError
from meada.types import Images, Logits


class Fitted(nn.Module):
    """Resizes pictures to what the network expects and puts its logits in another order."""

    def __init__(self, net: nn.Module, side: int, order: list[int]) -> None:
        super().__init__()
        self.net, self.side, self.order = net, side, order

    def forward(self, x: Images) -> Logits:
        if x.shape[-1] != self.side:
            x = interpolate(x, size=(self.side, self.side), mode="bilinear", antialias=True)
        logits: Tensor = self.net(x)
        return logits[:, self.order]


def fitted(path: str, task: Task, trust: Sequence[str] = ()) -> nn.Module:
    """The model at ``path`` for the task's classes; it may know others too, which it is then not asked for."""
    model, classes = open_model(Path(path), trust), task.classes
    if model.multilabel != task.multilabel:
        kinds = ("one label per picture", "several labels per picture")
        raise MeadaError(f"--model must be of {kinds[task.multilabel]}, got one of {kinds[model.multilabel]}: {path}")
    missing = [name for name in classes if name not in model.classes]
    if missing:
        raise MeadaError(f"--model must know all classes of the data, got none for '{missing[0]}' in {path}")
    return Fitted(model.net, model.side, [model.classes.index(name) for name in classes]).eval()
