"""Several labels per picture: likelihood, scores by hand, and the way from a CSV file to predictions."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from tests_tiny import QUICK
from typer.testing import CliRunner

import meada
from meada.cli.main import app
from meada.datasets import Samples, Task
from meada.deploy.model import save_model
from meada.entropy import bernoulli_entropy, softmax_entropy
from meada.errors import MeadaError
from meada.maximise import tilted_views
from meada.methods.parts.descent import Descent
from meada.objective import Objective, bernoulli_cross_entropy
from meada.robustify import labels, training
from meada.robustify.outcome import entropy_limit
from meada.robustify.probe import best_head
from meada.robustify.scoring import fitted, full_score

LOGITS = torch.tensor([[2.0, -1.0], [1.0, 3.0], [-2.0, 0.5], [-1.0, -3.0]])
TRUTH = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [1.0, 0.0]])


def test_two_labels_are_four_classes_with_independent_laws():
    """Entropy and cross-entropy equal those of the product law over the four sets."""
    logits = torch.tensor([[0.7, -1.3]], dtype=torch.float64)
    p = logits.sigmoid()[0]
    sets = torch.tensor([[(1 - p[0]) * (1 - p[1]), (1 - p[0]) * p[1], p[0] * (1 - p[1]), p[0] * p[1]]]).log()
    torch.testing.assert_close(bernoulli_entropy(logits), softmax_entropy(sets))
    y = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(bernoulli_cross_entropy(logits, y), -sets[:, 2])
    z = torch.zeros(1, 1, dtype=torch.float64)
    torch.testing.assert_close(
        Objective(beta=2.0, gamma=0.0)(logits, z, z, y), -sets[:, 2] + 2 * bernoulli_entropy(logits)
    )


def test_scores_worked_out_by_hand():
    """Right: 2 + 1 + 1 + 1 of 8; first label: 1 of 2 yes, 1 of 2 no; second: 1 of 1 yes, 2 of 3 no."""
    found = full_score(LOGITS, TRUTH)
    assert found["accuracy"] == 62.5 and found["exact_match"] == 25.0 and found["n"] == 4
    assert found["balanced_accuracy"] == pytest.approx(100 * (0.5 + (1 + 2 / 3) / 2) / 2)
    assert found["auc"] == pytest.approx((0.75 + 1.0) / 2)
    assert found["nll"] == pytest.approx(float(bernoulli_cross_entropy(LOGITS.double(), TRUTH.double()).mean()) / 2)
    assert set(found) >= {"accuracy", "n", "ece", "nll", "balanced_accuracy"}


def test_a_limit_of_entropy_is_about_all_labels_of_a_picture():
    sure = torch.tensor([[9.0, 9.0], [0.1, -9.0]])
    limit = entropy_limit(sure, torch.tensor([[1.0, 1.0], [0.0, 0.0]]))
    assert limit is not None and limit < 0.01


def test_the_head_of_a_probe_reads_labels_that_overlap():
    z = torch.randn(200, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    y = (z[:, :3] > 0).float()  # three labels, each a coordinate
    (weight, bias), _ = best_head((z[:150], y[:150]), (z[150:], y[150:]), 3)
    assert labels.accuracy(z[150:] @ weight.T + bias, y[150:]) > 95


def test_training_sees_the_row_of_each_picture():
    """One pixel per label: only a network that is shown the right rows learns to read both."""
    y = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]).repeat(8, 1)
    images = torch.zeros(32, 3, 4, 4, dtype=torch.uint8)
    images[:, 0] = (255 * y[:, 0]).to(torch.uint8)[:, None, None]
    images[:, 1] = (255 * y[:, 1]).to(torch.uint8)[:, None, None]
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(3, 2))
    how = training.Tuning(
        training.hardened(4, meada.SPACES["warp"](), views=2, hardness=0.5), Descent(name="adam", lr=0.1), 60, 8, seed=0
    )  # fmt: skip
    training.tune(net, Samples(images, y), how)
    assert labels.accuracy(net(images.double() / 255), y) == 100


def test_the_hardest_view_is_that_of_the_labels_score():
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 3)).eval()
    x, y = torch.rand(5, 3, 4, 4), torch.randint(2, (5, 3)).float()
    space = meada.SPACES["colour_curve"]()
    objective, rows = Objective(beta=1.0, gamma=0.0), np.arange(5)
    view = lambda k, hardness: tilted_views(
        net, x, y, space, objective, k=k, hardness=hardness, seed=1, step=0, rows=rows
    )
    z = torch.zeros(5, 0)
    score = lambda images: objective(net(images), z, z, y)
    with torch.no_grad():
        assert bool((score(view(4, 1.0)) >= score(view(1, 0.0)) - 1e-6).all())


@pytest.fixture
def listed(tmp_path: Path, rng: np.random.Generator) -> Path:
    """Red and green channels are labels; every combination occurs, one of them rarely."""
    lines = ["path,red,green"]
    for k in range(40):
        red, green = k % 2, int(k % 4 < 2 and k > 3)
        pixels = rng.integers(0, 60, (36, 40, 3), np.uint8)
        pixels[..., 0] += 180 * red
        pixels[..., 1] += 180 * green
        Image.fromarray(pixels).save(tmp_path / f"{k}.png")
        lines.append(f"{k}.png,{red},{green}")
    (tmp_path / "list.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "list.csv"


def test_a_csv_of_several_labels_becomes_a_model(listed, tmp_path, single):
    out = tmp_path / "out"
    meada.robustify(listed, out, side=32, network="lenet", settings=QUICK, say=lambda text: None)
    held = json.loads((out / "outcome.json").read_text())
    assert held["labels"] == "several" and held["classes"] == ["red", "green"]
    for one in held["candidates"].values():
        assert one["held_out"]["n"] == 8 and set(one["held_out"]) >= {"accuracy", "exact_match", "balanced_accuracy"}
        assert 0 <= one["corruptions"]["mean"] <= 100 and len(one["corruptions"]["by_name"]) == 15
    assert "Is it better?" in (out / "report.html").read_text()
    model = meada.load(out)
    label, probability, entropy = model.predict(listed.parent / "1.png")[0]
    assert label in ("red", "green", "red+green", "(none)")
    with torch.no_grad():
        p = model(torch.from_numpy(np.asarray(Image.open(listed.parent / "1.png").resize((32, 32), 2)).copy())
                  .permute(2, 0, 1)[None] / 255).sigmoid()[0].double()  # fmt: skip
    assert probability == pytest.approx(float(torch.maximum(p, 1 - p).prod()), abs=1e-4)
    assert 0 <= entropy <= 2 * math.log(2)
    evaluated = CliRunner().invoke(app, ["evaluate", str(out), "--json"])
    scores, written = json.loads(evaluated.stdout)["source"], held["candidates"][held["delivered"]]["held_out"]
    assert scores.keys() == written.keys() and scores["n"] == 8
    assert all(scores[key] == pytest.approx(written[key]) for key in ("accuracy", "exact_match", "balanced_accuracy"))
    attacked = CliRunner().invoke(app, ["evaluate", str(out), "--pgd", "2"])
    assert str(attacked.exception) == "--pgd must be 0 for a model of several labels per picture, got 2"
    with pytest.raises(MeadaError, match="net must have one label per picture, got a model of several"):
        meada.evaluate(model, (torch.rand(2, 3, 32, 32), [0, 1]))
    save_model(tmp_path / "one.safetensors", model.net, model.recipe, model.classes)
    with pytest.raises(MeadaError, match="--model must be of several labels per picture, got one of one label"):
        two = Samples(torch.zeros(2, 3, 4, 4, dtype=torch.uint8), TRUTH[:2])
        fitted(str(tmp_path / "one.safetensors"), Task(model.classes, two, two, {}, ("list",), multilabel=True))
