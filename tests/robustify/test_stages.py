"""What each stage trains on and starts from: nothing that is tested later, and the weights that the page names."""

import pytest
import torch

from meada.datasets import Samples, Task
from meada.datasets.folder import folder
from meada.evaluation.selection import fixed_subset
from meada.robustify import robustify, stages, training
from meada.robustify.scoring import SHIFTED


def rows(images: torch.Tensor) -> set[bytes]:
    return {one.numpy().tobytes() for one in images}


@pytest.fixture
def calls(photos, tiny, tmp_path, monkeypatch):
    """A whole run, and what each training, head and shifted set of it was given."""
    seen: dict[str, list] = {"tune": [], "head": [], "sets": []}
    tune, head, sets = training.tune, stages.best_head, stages.sets

    def tuned(net, samples, how, *rest, **more):
        weights = {name: value.clone() for name, value in net.state_dict().items()}
        if how.descent.lr > 1e-8:  # not the few steps that are timed before the plan is made
            seen["tune"].append((weights, samples, how))
        return tune(net, samples, how, *rest, **more)

    def fitted(fit, held, classes):
        seen["head"].append((fit, held))
        return head(fit, held, classes)

    def made(held_out, tests, **how):
        seen["sets"].append((held_out, tests, how))
        return sets(held_out, tests, **how)

    monkeypatch.setattr(training, "tune", tuned)
    monkeypatch.setattr(stages, "best_head", fitted)
    monkeypatch.setattr(stages, "sets", made)
    outcome = robustify(photos, tmp_path / "out", **tiny)
    return seen, outcome, folder(path=str(photos), side=32, seed=3)


def test_no_training_sees_a_held_out_picture(calls):
    seen, _, task = calls
    held, trained = rows(task.validation.images), rows(task.train.images)
    assert held and trained and not held & trained and len(seen["tune"]) >= 4
    for _, samples, _ in seen["tune"]:
        assert isinstance(samples, Samples) and rows(samples.images) == trained
    ((fit, kept),) = seen["head"]
    assert len(fit[1]) == 2 * len(task.train) and torch.equal(kept[1], task.validation.labels)


def test_hardened_starts_from_the_probe_with_frozen_batch_norm_and_plain_from_the_first_weights(calls, tmp_path):
    seen, outcome, _ = calls
    from safetensors.torch import load_file

    probe = load_file(tmp_path / "out" / "candidates" / "probe.safetensors")
    hard = [(weights, how) for weights, _, how in seen["tune"] if how.average_from < 1]
    plain = [(weights, how) for weights, _, how in seen["tune"] if how.average_from == 1]
    ((weights, how),) = hard
    assert how.frozen and all(torch.equal(weights[name], probe[name]) for name in probe)
    assert not any(how.frozen for _, how in plain)
    assert all(not torch.equal(weights["6.weight"], probe["6.weight"]) for weights, _ in plain)  # a random head
    seeds = [how.seed for _, how in plain if how.steps == outcome.content["plan"]["steps"]]
    assert len(seeds) == 2 and seeds[0] != seeds[1]  # plain and its repetition


def test_the_position_between_the_weights_is_not_chosen_on_pixels_that_are_scored(calls):
    seen, _, task = calls
    (_, _, choosing), (held_out, tests, scoring) = seen["sets"]
    assert choosing["seed"] != scoring["seed"] and not tests
    assert rows(held_out.images) == rows(task.validation.images)
    some = fixed_subset(SHIFTED, held_out, scoring["shifted_n"])
    assert rows(some.images) <= rows(task.validation.images)


def test_the_views_of_the_training_keep_the_order_of_their_labels(monkeypatch):
    """A network that reads the label off the picture: its loss is near 0 only if pictures, views and labels agree."""
    from meada.methods.method import Context
    from meada.types import Batch

    y = torch.arange(8) % 2
    x = torch.where(y[:, None, None, None] == 1, 0.9, 0.1).expand(-1, 3, 8, 8).contiguous()
    monkeypatch.setattr(training, "tilted_views", lambda net, x, y, *rest, **more: x)
    net = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(3, 2))
    with torch.no_grad():
        net[2].weight.copy_(torch.tensor([[-20.0] * 3, [20.0] * 3]))
        net[2].bias.copy_(torch.tensor([30.0, -30.0]))
    batch = Batch(x, y, None, sample_index=torch.arange(8))
    method = training.hardened(8, training.space_of(colour=True), views=1, hardness=0.0)
    context = Context(seed=0, pool_size=8)
    assert float(method.loss(net, batch, context).detach()) < 1e-3
    wrong = Batch(x, 1 - y, None, sample_index=torch.arange(8))
    clean = torch.nn.functional.cross_entropy(net(x), 1 - y)
    assert float(method.loss(net, wrong, context).detach()) == pytest.approx(
        2 * float(clean.detach())
    )  # clean pictures plus views


def test_some_of_many_test_pictures_are_of_every_class():
    all_ = Samples(torch.zeros(12, 3, 1, 1, dtype=torch.uint8), torch.arange(12) // 4)
    assert stages.capped(all_, 6).labels.tolist() == [0, 0, 1, 1, 2, 2] and len(stages.capped(all_, 0)) == 12


def test_ones_own_model_may_have_other_classes_in_another_order(tmp_path, single):
    from meada.deploy.model import save_model
    from meada.robustify.scoring import Fitted, fitted
    from meada.runs.network import build_network
    from meada.runs.recipe import resolve

    table = {"name": "x", "network": {"name": "lenet"}, "method": {"name": "erm"}, "data": {"name": "embedded"}}
    recipe = resolve(table)
    net = build_network(recipe, 4)
    save_model(tmp_path / "m.safetensors", net, recipe, ("owl", "cat", "emu", "dog"))
    few = Samples(torch.zeros(2, 3, 32, 32, dtype=torch.uint8), torch.arange(2))
    found = fitted(str(tmp_path / "m.safetensors"), Task(("cat", "dog"), few, few, {}, ("data",)))
    assert isinstance(found, Fitted) and found.order == [1, 3]
    x = torch.rand(2, 3, 32, 32)
    torch.testing.assert_close(found(x), net.eval()(x)[:, [1, 3]])
