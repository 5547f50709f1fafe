"""NaN has an argmax: wherever predictions are scored it is an error that says where."""

from pathlib import Path

import pytest
import torch
from tests_tiny import write_recipe
from torch import Tensor, nn

import meada
from meada.datasets.task import Samples, Task
from meada.errors import NonFiniteError
from meada.evaluation.attack import under_attack
from meada.evaluation.selection import Selection
from meada.robustify.scoring import score_all, sets
from meada.runs.recipe import load_recipe
from meada.runs.run import run

INFINITE = pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])


class Broken(nn.Module):
    """Finite logits, but for images that are white all over."""

    def __init__(self, value: float = float("nan")) -> None:
        super().__init__()
        self.readout, self.value = nn.Linear(3, 2), value

    def forward(self, x: Tensor) -> Tensor:
        logits = self.readout(x.mean((2, 3)))
        white = x.mean((1, 2, 3))[:, None] > 0.97
        return torch.where(white, torch.full_like(logits, self.value), logits)


def samples(*whites: bool, side: int = 8) -> Samples:
    levels = torch.tensor([255 if white else 60 for white in whites], dtype=torch.uint8)
    images = levels.view(-1, 1, 1, 1).expand(-1, 3, side, side).clone()
    images[..., ::2] -= (images < 255)[..., ::2] * 40  # stripes: an edge map of them is not white
    return Samples(images, torch.zeros(len(whites), dtype=torch.long))


@INFINITE
def test_evaluate_names_the_domain_and_the_step(value):
    good, bad = samples(False, False), samples(True, False, True)
    domains = {"good": (good.images, good.labels), "bad": (bad.images, bad.labels)}
    with pytest.raises(NonFiniteError, match="for 2 of 3 images of 'bad'$"):
        meada.evaluate(Broken(value), domains)
    with pytest.raises(NonFiniteError, match="of 'bad' at step 40$"):
        meada.evaluate(Broken(value), domains, step=40)


def test_a_candidate_is_refused_on_the_domain_that_breaks_it():
    plain, broken = samples(False, False, False), samples(True, False)
    task = Task(("a", "b"), plain, plain, {"fine": plain, "svhn": broken}, ("s",))
    with pytest.raises(NonFiniteError, match="of 'svhn' at step 7$"):
        Selection(task, subset=3, crafted_size=1).scores(Broken(), step=7)


def test_robustify_scores_no_network_that_gives_nan(tmp_path):
    made = sets(samples(True, True, side=32), {}, trained=frozenset(), shifted_n=2, severities=[1], seed=0)
    with pytest.raises(NonFiniteError, match="of 'held_out'$"):
        score_all({"plain": Broken()}, made, tmp_path, tell=lambda *_: None)
    assert not list(tmp_path.iterdir())


def test_an_attack_does_not_count_nan_as_class_0():
    with pytest.raises(NonFiniteError, match="of 'held-out pictures'$"):
        under_attack(Broken(), {"held-out pictures": samples(True, False)}, n=2, steps=1)


def broken_when_evaluated(num_classes: int = 10) -> nn.Module:
    """Trains on finite numbers, gives NaN in eval mode: an overflowing running variance would."""
    net = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(3 * 32 * 32), nn.Linear(3 * 32 * 32, num_classes))
    net[1].register_forward_hook(lambda m, _, out: out if m.training else out * float("nan"))
    return net


def test_a_run_ends_at_the_first_candidate_that_gives_nan(tmp_path, single):
    changes = [f"network.name={Path(__file__)}:broken_when_evaluated", "plan.rounds=0"]
    recipe = load_recipe(str(write_recipe(tmp_path, method="erm", settings="")), changes)
    with pytest.raises(NonFiniteError, match="20 of 20 images of 'source' at step 5$"):
        run(recipe, tmp_path / "out")
