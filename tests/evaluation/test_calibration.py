"""Temperature scaling: the fit, what it does to a network, and the rule of a run."""

import pytest
import torch
from safetensors.torch import load_file
from tests_tiny import load_tiny, network_of, write_recipe
from torch import nn
from torch.nn.functional import cross_entropy

from meada.datasets.task import Samples
from meada.errors import MeadaError
from meada.evaluation.calibration import best_temperature, divide_logits, temperature_on_views
from meada.runs.recipe import load_recipe
from meada.runs.run import run
from meada.spaces import SPACES
from meada.spaces.space import Space

WITHOUT_LINEAR = """
from torch import nn

def convolutions(num_classes):
    return nn.Sequential(nn.Conv2d(3, num_classes, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())
"""


class Scaled(nn.Module):
    """Logits (mean, -mean) times ``scale``: sure of a bright image, unsure of a grey one."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.head = nn.Linear(1, 2, bias=False)
        self.head.weight.data = torch.tensor([[scale], [-scale]])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(x.mean((1, 2, 3))[:, None] - 0.5)


@pytest.fixture
def held_out():
    torch.manual_seed(0)
    images = (255 * (torch.rand(180, 3, 6, 6) * 0.2 + 0.8 * torch.rand(180, 1, 1, 1))).to(torch.uint8)
    chance = torch.sigmoid(8 * (images.double().mean((1, 2, 3)) / 255 - 0.5))  # as of logits (4 m, -4 m)
    return Samples(images, (torch.rand(180) > chance).long())


@pytest.fixture
def same(monkeypatch):
    """A space that changes nothing."""
    monkeypatch.setitem(
        SPACES, "same", lambda: Space(draw=lambda *_: {}, transform=lambda x, _: x, families=frozenset())
    )
    return "same"


def test_it_is_the_minimum_of_the_likelihood():
    torch.manual_seed(0)
    logits = 3 * torch.randn(300, 4)
    labels = (logits + 3 * torch.randn(300, 4)).argmax(-1)
    nll = lambda t: float(cross_entropy(logits / t, labels))
    best = best_temperature(nll)
    assert all(nll(best) <= nll(best * factor) for factor in (0.9, 0.99, 1.01, 1.1))


def test_a_network_too_sure_by_a_factor_gets_that_factor(held_out, same):
    found = {scale: temperature_on_views(Scaled(scale), held_out, same, seed=0, step=5) for scale in (4.0, 12.0)}
    assert found[12.0] == pytest.approx(3 * found[4.0], rel=1e-3)  # the same data, three times as sure
    assert 0.4 < found[4.0] < 2.5


def test_divided_weights_have_the_temperature(held_out):
    net, x = Scaled(12.0), held_out.images / 255
    before = net(x)
    divide_logits(net.head, 3.0)
    torch.testing.assert_close(net(x), before / 3.0)


def test_views_are_keyed_by_seed_and_step(held_out):
    fit = lambda seed, step: temperature_on_views(Scaled(12.0), held_out, "wide", seed=seed, step=step)
    assert fit(0, 5) == fit(0, 5) and len({fit(0, 5), fit(1, 5), fit(0, 6)}) == 3


def test_a_run_has_one_more_rule(tmp_path):
    path = write_recipe(tmp_path, method="erm", settings="", min_steps=0, total_steps=8)
    record = run(load_tiny(path, ["calibrate_on=deep", "plan.rounds=0"]), tmp_path / "run")
    assert set(record["results"]) == {"last", "calibrated", "source_val", "crafted", "oracle"}
    temperature = record["selected"]["calibrated"]["temperature"]
    last, scaled = (
        load_file(tmp_path / "run" / name) for name in ("model.safetensors", "selected/calibrated.safetensors")
    )
    assert temperature != 1
    for name in last:
        expected = last[name] / temperature if name.startswith("7.") else last[name]
        torch.testing.assert_close(scaled[name], expected)
    for domain, scores in record["results"]["last"].items():
        other = record["results"]["calibrated"][domain]
        assert other["accuracy"] == scores["accuracy"] and other["ece"] != scores["ece"]


@pytest.mark.parametrize("space", ["pixels", "nothing", "net.py:mine"])
def test_a_space_without_a_prior_is_refused_before_training(tmp_path, space):
    path = write_recipe(tmp_path, method="erm", settings="", min_steps=0, total_steps=8)
    with pytest.raises(MeadaError, match=f"calibrate_on must be empty or one of random_convolution.*got '{space}'"):
        run(load_tiny(path, [f"calibrate_on={space}", "plan.rounds=0"]), tmp_path / "run")
    assert not (tmp_path / "run" / "checkpoint.pt").exists()


def test_a_network_without_a_linear_head_is_refused_before_training(tmp_path):
    (tmp_path / "net.py").write_text(WITHOUT_LINEAR)
    path = write_recipe(tmp_path, method="erm", settings="", min_steps=0, total_steps=8)
    path.write_text(path.read_text().replace(network_of(path), f"{tmp_path}/net.py:convolutions"))
    with pytest.raises(MeadaError, match="must be an nn.Linear"):
        run(load_tiny(path, ["calibrate_on=deep", "plan.rounds=0"]), tmp_path / "run")
    assert not (tmp_path / "run" / "checkpoint.pt").exists()


def test_the_recipe_for_photographs_has_it():
    assert load_recipe("pacs-photo/tilted-random").calibrate_on == "deep"
    assert load_recipe("pacs-photo/erm").calibrate_on == ""
