"""Algorithm 1 in a library user's hands."""

import contextlib
import gc
import os
import pty
import subprocess
import sys
from copy import deepcopy

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import meada
from meada.errors import MeadaError

PLAN = meada.Plan(rounds=2, min_steps=3, total_steps=12, batch_size=4)


@pytest.fixture
def data():
    return torch.rand(8, 3, 4, 4), torch.arange(8) % 5


def test_it_trains_in_place_and_tells_what_it_did(linear_net, data):
    before = deepcopy(linear_net.state_dict())
    record = meada.fit(linear_net, data, "meada", plan=PLAN, seed=3)
    assert not torch.equal(before["1.weight"], linear_net[1].weight)
    assert record["steps"] == 12 and record["method"] == "meada" and record["seed"] == 3
    assert record["passes"] == {"forward": 1.0, "backward": 1.0}  # of a training step
    assert [r["pool"] for r in record["rounds"]] == [16, 32]
    assert record["rounds"][0]["ce"][1] > record["rounds"][0]["ce"][0]
    assert record["seconds"]["maximise"] > 0


def test_a_pool_is_taken_as_it_is_and_keeps_its_blocks(linear_net, data):
    pool = meada.Pool(*data, store="uint8")
    meada.fit(linear_net, pool, meada.METHODS["meada"](grow="source"), plan=PLAN)
    assert [len(b.labels) for b in pool.blocks] == [8, 8, 8]
    assert pool.blocks[1].images.dtype == torch.uint8


def test_loss_falls(data):
    net = nn.Sequential(nn.Flatten(), nn.Linear(48, 5))
    plan = meada.Plan(rounds=0, min_steps=0, total_steps=200, batch_size=8)
    before = meada.evaluate(net, {"a": data})["a"]["nll"]
    meada.fit(net, data, "erm", plan=plan, descent=meada.Descent(lr=0.05))
    assert meada.evaluate(net, {"a": data})["a"]["nll"] < 0.5 * before


@pytest.mark.parametrize(
    "images, labels, sentence",
    [
        (torch.rand(4, 3, 5, 5), torch.zeros(4).long(), r"images of shape \(3, 5, 5\)"),
        (torch.rand(4, 3, 4, 4), torch.full((4,), 7), r"labels must be in 0\.\.4, the classes of the network, got 7"),
        (torch.rand(0, 3, 4, 4), torch.zeros(0).long(), "source must have at least one"),
    ],
)
def test_what_the_network_cannot_take_is_said_first(linear_net, images, labels, sentence):
    with pytest.raises(MeadaError, match=sentence):
        meada.fit(linear_net, (images, labels), plan=PLAN)


def test_an_unknown_method_gives_the_nearest(linear_net, data):
    with pytest.raises(MeadaError, match="did you mean 'meada'"):
        meada.fit(linear_net, data, "meda")


def test_a_loss_that_leaves_the_numbers_is_said(linear_net, data):
    bad = meada.Method(loss=lambda net, batch, context: net(batch.x).sum() * float("inf"))
    with pytest.raises(MeadaError, match="step 1 of the minimisation phase: the loss is"):
        meada.fit(linear_net, data, bad, plan=PLAN)


def test_the_name_stays_a_function():
    import meada.algorithm

    assert callable(meada.fit)


def erm(steps=6):
    return meada.Plan(rounds=0, min_steps=0, total_steps=steps, batch_size=4)


def test_every_loss_is_in_the_record(linear_net, data):
    record = meada.fit(linear_net, data, plan=PLAN)
    assert len(record["losses"]) == 12 and all(loss > 0 for loss in record["losses"])


def test_a_loader_trains_the_same_weights_as_its_tensors(data):
    def trained(given):
        torch.manual_seed(1)
        net = nn.Sequential(nn.Flatten(), nn.Linear(48, 5))
        meada.fit(net, given, plan=PLAN)
        return net[1].weight

    with pytest.warns(UserWarning, match="batch size and order"):
        loaded = trained(DataLoader(TensorDataset(*data), 3, shuffle=True))
    assert torch.equal(loaded, trained(data))


def test_the_methods_settings_go_by_keyword(linear_net, data):
    other = deepcopy(linear_net)
    meada.fit(linear_net, data, "meada", plan=PLAN, beta=0.0, steps=2)
    meada.fit(other, data, meada.METHODS["ada"](steps=2), plan=PLAN)
    assert torch.equal(linear_net[1].weight, other[1].weight)


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        ({"bta": 1.0}, "unknown setting 'bta' of method 'meada': did you mean 'beta'"),
        ({"optimizer": None}, "did you mean 'optimiser'"),
        ({"beta": "much"}, "key 'beta' must be a valid number"),
        ({"method": meada.METHODS["erm"](), "beta": 1.0}, "given to the Method itself"),
        ({"device": "gpu"}, "device must be auto"),
        ({"device": "cuda"}, "device must be one of .*cpu.*, got 'cuda'"),
        ({"descent": meada.Descent(), "optimiser": torch.optim.SGD}, "got both"),
        ({"optimiser": lambda weights: None}, "got NoneType"),
        ({"optimiser": torch.optim.SGD(nn.Linear(2, 2).parameters())}, "weights of another"),
        ({"callbacks": [meada.Callback]}, "call it"),
        ({"validate_every": 0}, "validate_every must be"),
        ({"embedding": "nowhere"}, "nowhere"),
    ],
)
def test_arguments_that_cannot_be_meant_are_refused(linear_net, data, arguments, sentence):
    with pytest.raises(MeadaError, match=sentence):
        meada.fit(linear_net, data, **{"plan": PLAN, **arguments})


def test_a_network_must_be_one_with_weights_to_train(data):
    frozen = nn.Sequential(nn.Flatten(), nn.Linear(48, 5)).requires_grad_(False)
    for net, sentence in [
        (nn.Flatten(), "weights to train"),
        (frozen, "weights to train"),
        (nn.Sequential(nn.Flatten(), nn.LazyLinear(5)), "lazy"),
    ]:
        with pytest.raises(MeadaError, match=sentence):
            meada.fit(net, data, plan=PLAN)
        if "train" not in sentence:
            with pytest.raises(MeadaError, match=sentence):
                meada.evaluate(net, {"a": data})


@pytest.mark.parametrize("given", ["optimiser", "factory"])
def test_an_optimiser_of_ones_own_keeps_its_rate(linear_net, data, given):
    made = []

    def factory(weights):
        made.append(torch.optim.SGD(weights, lr=0.25))
        return made[0]

    optimiser = factory(linear_net.parameters()) if given == "optimiser" else factory
    before = linear_net[1].weight.clone()
    x, y = data[0][:4], data[1][:4]
    loss = nn.functional.cross_entropy(linear_net(x), y)
    (gradient,) = torch.autograd.grad(loss, linear_net[1].weight)
    meada.fit(linear_net, (x, y), "erm", plan=erm(1), optimiser=optimiser)
    torch.testing.assert_close(linear_net[1].weight, before - 0.25 * gradient)
    assert made[0].param_groups[0]["lr"] == 0.25


def test_validation_is_scored_on_the_way_and_at_the_end(linear_net, data):
    record = meada.fit(linear_net, data, "erm", plan=erm(7), validation=data, validate_every=3)
    assert [line["step"] for line in record["validation"]] == [3, 6, 7]
    assert record["validation"][-1]["scores"]["validation"] == meada.evaluate(linear_net, {"a": data})["a"]
    several = meada.fit(linear_net, data, "erm", plan=erm(2), validation={"a": data, "b": TensorDataset(*data)})
    assert set(several["validation"][-1]["scores"]) == {"a", "b"}


def test_callbacks_hear_of_start_steps_rounds_validation_and_end(linear_net, data):
    class Heard(meada.Callback):
        def __init__(self):
            self.start, self.log, self.end = None, [], None

        def on_start(self, about):
            self.start = about

        def on_log(self, step, values):
            self.log.append((step, set(values)))

        def on_end(self, record):
            self.end = record

    heard, steps = Heard(), []
    functions = [heard, lambda step, values: steps.append(step)]
    record = meada.fit(linear_net, data, plan=PLAN, beta=2.0, validation=data, validate_every=12, callbacks=functions)
    assert heard.start["beta"] == 2.0 and heard.start["rounds"] == 2 and heard.end is record
    assert [step for step, names in heard.log if names == {"loss"}] == list(range(1, 13))
    assert [step for step, names in heard.log if "round/ce/after" in names] == [3, 6]
    assert [step for step, names in heard.log if "validation/validation/accuracy" in names] == [12]
    assert steps == [step for step, _ in heard.log]


def test_callbacks_are_told_when_a_training_fails(linear_net, data):
    ends = []

    class End(meada.Callback):
        def on_end(self, record):
            ends.append(record)

    bad = meada.Method(loss=lambda net, batch, context: net(batch.x).sum() * float("inf"))
    with pytest.raises(MeadaError):
        meada.fit(linear_net, data, bad, plan=PLAN, callbacks=End())
    assert ends == [None]


def test_files_of_a_data_set_are_gone_afterwards(linear_net, data, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    meada.fit(linear_net, TensorDataset(*data), "erm", plan=erm())
    gc.collect()
    assert not list(tmp_path.iterdir())
    with pytest.raises(MeadaError):
        meada.fit(linear_net, TensorDataset(data[0] * 9, data[1]), "erm", plan=erm())
    assert not list(tmp_path.iterdir())


BAR = """
import meada, torch
net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 2))
plan = meada.Plan(rounds=0, min_steps=0, total_steps=5, batch_size=4)
meada.fit(net, (torch.rand(8, 3, 2, 2), [0, 1] * 4), "erm", plan=plan)
"""


def test_a_bar_is_shown_on_a_terminal_and_nowhere_else():
    command = [sys.executable, "-c", BAR]
    done = subprocess.run(command, capture_output=True, check=True)
    assert done.stderr == done.stdout == b""
    outer, inner = pty.openpty()
    shown = b""
    with subprocess.Popen(command, stderr=inner) as running:
        os.close(inner)
        with contextlib.suppress(OSError):  # the other side is closed: the process has ended
            while part := os.read(outer, 1 << 12):
                shown += part
    os.close(outer)
    assert running.returncode == 0 and b"erm: training" in shown


def test_data_without_a_name_gives_its_scores_alone(linear_net, data):
    named = meada.evaluate(linear_net, {"a": data})["a"]
    assert meada.evaluate(linear_net, DataLoader(TensorDataset(*data), 3)) == named == meada.evaluate(linear_net, data)
