"""Settings by the size and number of pictures, and the plan that fits a time."""

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from meada.datasets.task import Samples, Task
from meada.errors import MeadaError
from meada.robustify import stages
from meada.robustify.budget import SLACK, Budget, Costs
from meada.robustify.plan import Plan, Request, duration, plan_for
from meada.robustify.stages import Work

COSTS = Costs(plain=0.5, hardened=1.5, look=0.01, corrupt=0.02)
FACTS = (800, 200, 200, Request("data"))  # pictures to train on and held out, their side
TESTS = (500, 60)


def budget(whole: Plan, seconds: float, train: int = 800, held_out: int = 200, pinned: tuple[str, ...] = ()) -> Budget:
    return Budget(seconds, 0.0, whole, COSTS, train, held_out, TESTS, pinned)


@pytest.mark.parametrize(
    "pixels, asked, network, side, pretrained",
    [
        (227, {}, "efficientnet_lite0", 128, True),
        (65, {}, "efficientnet_lite0", 128, True),
        (64, {}, "wideresnet16_1", 64, False),
        (28, {}, "wideresnet16_1", 32, False),
        (227, {"network": "lenet"}, "lenet", 32, False),
        (227, {"network": "resnet18", "weights": "w.pth"}, "resnet18", 224, True),
        (227, {"network": "resnet18"}, "resnet18", 128, False),
        (227, {"side": 96}, "efficientnet_lite0", 96, True),
        (227, {"side": 48}, "wideresnet16_1", 48, False),
    ],
)
def test_the_pictures_choose_network_and_size(pixels, asked, network, side, pretrained):
    plan = plan_for(800, 200, pixels, Request("data", **asked))
    assert (plan.network, plan.side, plan.pretrained) == (network, side, pretrained)
    assert bool(plan.interpolation) == bool(plan.trial_steps) == pretrained  # neither from scratch


def test_what_was_asked_for_is_in_the_plan_and_a_strange_key_is_named():
    assert plan_for(*FACTS, {"steps": 7}).steps == 7
    with pytest.raises(MeadaError, match="unknown key 'step': did you mean 'steps'"):
        plan_for(*FACTS, {"step": 7})


def test_the_rate_of_hardened_goes_with_the_batch():
    """At the rate of 32 pictures, batches of 8 broke the network."""
    many, few = plan_for(800, 200, 227, Request("data")), plan_for(40, 10, 227, Request("data"))
    assert (many.batch_size, many.hardened_rate) == (32, pytest.approx(0.003))
    assert (few.batch_size, few.hardened_rate) == (8, pytest.approx(0.00075))
    assert plan_for(800, 200, 227, Request("data"), {"batch_size": 16}).hardened_rate == pytest.approx(0.0015)
    assert plan_for(40, 10, 227, Request("data"), {"hardened_rate": 0.01}).hardened_rate == 0.01


def test_every_setting_has_a_reason():
    assert all(one.description for one in Plan.model_fields.values())


def test_the_estimate_worked_out_by_hand():
    plan = plan_for(*FACTS, {"steps": 100, "trial_steps": 10, "shifted": 50, "test": 100, "rates": [0.1, 0.2]})
    by_stage = budget(plan, 900.0).seconds(plan)
    assert by_stage["plain"] == by_stage["plain_repeat"] == 50.0 and by_stage["hardened"] == 150.0
    assert by_stage["rate"] == pytest.approx(2 * (10 * 0.5 + 200 * 0.01))
    assert by_stage["probe"] == pytest.approx((1600 + 200) * 0.01)
    rows = 19 * 50
    assert by_stage["score"] == pytest.approx(6 * (200 + 160 + rows) * 0.01 + rows * 0.02)


@given(minutes=st.floats(0.5, 60))
def test_a_fitted_plan_keeps_to_its_time_or_is_the_smallest(minutes):
    whole = plan_for(*FACTS)
    limited = budget(whole, 60 * minutes)
    total = lambda plan: sum(limited.seconds(plan).values())
    fitted, smallest = limited.fitted(), total(limited.shrunk(0.0))
    assert total(fitted) <= max(60 * minutes, smallest)
    if 60 * minutes > 1.5 * smallest and fitted != whole:  # and uses what it was given
        assert total(fitted) > 0.9 * SLACK * 60 * minutes


def test_enough_time_changes_nothing_and_what_was_asked_for_stays():
    whole = plan_for(*FACTS)
    assert budget(whole, 1e6).fitted() == whole
    fitted = budget(whole, 60.0, pinned=("steps", "shifted")).fitted()
    assert fitted.steps == whole.steps and fitted.shifted == whole.shifted and 0 < fitted.test < 500


def test_times_are_said_as_people_say_them():
    assert [duration(s) for s in (0.4, 99.0, 100.0, 5400.0, 6000.0)] == ["0 s", "99 s", "2 min", "90 min", "1 h 40 min"]


def test_many_pictures_cost_no_more_than_they_tell():
    """Of 50,000 pictures 2,000 are held out, and the probe is fitted on a part of the others."""
    plan = plan_for(40_000, 10_000, 200, Request("data"))
    assert plan.held_out == pytest.approx(0.04) and plan.probe == 10_000 and plan.steps == 3000
    limited = budget(plan, 900.0, 48_000, 2000)
    small = limited.fitted()
    assert small.probe == 2000 and sum(limited.seconds(small).values()) < 900.0
    few = plan_for(16, 4, 200, Request("data"))
    assert (few.held_out, few.probe, few.batch_size, few.shifted) == (0.2, 0, 8, 4)


def unread(plan: Plan, held_out: int = 1) -> Work:
    """A run on pictures that are never looked at."""
    pictures = Samples(torch.zeros(held_out, 3, 1, 1, dtype=torch.uint8), torch.zeros(held_out, dtype=torch.long))
    return Work(Request("data"), Path(), Task(("a", "b"), pictures, pictures, {}, ()), plan)


def test_trials_of_learning_rates_are_long_enough_or_left_out():
    """Trials of four steps once chose a rate that ended at 44 % where the lowest one ended at 92 % (decision 78)."""
    whole = plan_for(*FACTS)
    for minutes in range(1, 40):
        plan = budget(whole, 60.0 * minutes).fitted()
        assert plan.trial_steps == 0 or plan.trial_steps >= 40
    assert plan.trial_steps
    for steps, used in ((20, 0.03), (45, 0.01)):
        short = whole.model_copy(update={"steps": steps, "trial_steps": 0})
        assert stages.rate(unread(short), lambda *_: None)["rate"] == used


@pytest.mark.parametrize(("found", "chosen"), [((90.0, 88.0, 91.0), 0.01), ((70.0, 89.0, 91.0), 0.003)])
def test_the_lowest_rate_within_a_standard_error_is_used(found, chosen, monkeypatch):
    """Of 100 held-out pictures with 91 % right the standard error is 2.9 points."""
    work = unread(plan_for(*FACTS), held_out=100)
    monkeypatch.setattr(Work, "fresh", lambda self: nn.Linear(1, 1))
    monkeypatch.setattr(stages.training, "tune", lambda *args, **keys: None)
    accuracies = iter(found)  # of 0.01, 0.003 and 0.03
    monkeypatch.setattr(stages, "accuracy", lambda net, samples: next(accuracies))
    assert stages.rate(work, lambda *_: None)["rate"] == chosen


def test_both_kinds_of_fine_tuning_are_clipped_and_neither_is_from_scratch():
    for pretrained in (True, False):
        plan = plan_for(*FACTS) if pretrained else plan_for(400, 100, 32, Request("d"))
        assert (stages._plain(unread(plan), 0.01, 10, 0).clip == plan.clip) == pretrained
