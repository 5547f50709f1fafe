"""Settings by the size and number of pictures, and the plan that fits a time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meada.errors import MeadaError
from meada.robustify.plan import SLACK, Costs, Facts, Plan, duration, estimate, fit, plan_for, shrunk

COSTS = Costs(plain=0.5, hardened=1.5, look=0.01, corrupt=0.02)
FACTS = Facts(train=800, held_out=200, side=200)
TESTS = (500, 60)


def total(plan: Plan) -> float:
    return sum(estimate(plan, COSTS, FACTS, TESTS).values())


@pytest.mark.parametrize(
    "facts, network, side, pretrained",
    [
        (Facts(800, 200, 227), "efficientnet_lite0", 128, True),
        (Facts(800, 200, 65), "efficientnet_lite0", 128, True),
        (Facts(800, 200, 64), "wideresnet16_1", 64, False),
        (Facts(800, 200, 28), "wideresnet16_1", 32, False),
        (Facts(800, 200, 227, network="lenet"), "lenet", 32, False),
        (Facts(800, 200, 227, network="resnet18", weights="w.pth"), "resnet18", 224, True),
        (Facts(800, 200, 227, network="resnet18"), "resnet18", 128, False),
        (Facts(800, 200, 227, asked_side=96), "efficientnet_lite0", 96, True),
        (Facts(800, 200, 227, asked_side=48), "wideresnet16_1", 48, False),
    ],
)
def test_the_pictures_choose_network_and_size(facts, network, side, pretrained):
    plan = plan_for(facts)
    assert (plan.network, plan.side, plan.pretrained) == (network, side, pretrained)
    assert bool(plan.interpolation) == bool(plan.trial_steps) == pretrained  # neither from scratch


def test_what_was_asked_for_is_in_the_plan_and_a_strange_key_is_named():
    assert plan_for(FACTS, {"steps": 7}).steps == 7
    with pytest.raises(MeadaError, match="unknown key 'step': did you mean 'steps'"):
        plan_for(FACTS, {"step": 7})


def test_the_rate_of_hardened_goes_with_the_batch():
    """At the rate of 32 pictures, batches of 8 broke the network."""
    many, few = plan_for(Facts(800, 200, 227)), plan_for(Facts(40, 10, 227))
    assert (many.batch_size, many.hardened_rate) == (32, pytest.approx(0.003))
    assert (few.batch_size, few.hardened_rate) == (8, pytest.approx(0.00075))
    assert plan_for(Facts(800, 200, 227), {"batch_size": 16}).hardened_rate == pytest.approx(0.0015)
    assert plan_for(Facts(40, 10, 227), {"hardened_rate": 0.01}).hardened_rate == 0.01


def test_every_setting_has_a_reason():
    assert all(one.description for one in Plan.model_fields.values())


def test_the_estimate_worked_out_by_hand():
    plan = plan_for(FACTS, {"steps": 100, "trial_steps": 10, "shifted": 50, "test": 100, "rates": [0.1, 0.2]})
    by_stage = estimate(plan, COSTS, FACTS, TESTS)
    assert by_stage["plain"] == by_stage["plain_repeat"] == 50.0 and by_stage["hardened"] == 150.0
    assert by_stage["rate"] == pytest.approx(2 * (10 * 0.5 + 200 * 0.01))
    assert by_stage["probe"] == pytest.approx((1600 + 200) * 0.01)
    rows = 19 * 50
    assert by_stage["score"] == pytest.approx(6 * (200 + 160 + rows) * 0.01 + rows * 0.02)


@given(minutes=st.floats(0.5, 60))
def test_a_fitted_plan_keeps_to_its_time_or_is_the_smallest(minutes):
    whole = plan_for(FACTS)
    fitted = fit(whole, COSTS, FACTS, TESTS, seconds=60 * minutes)
    smallest = total(shrunk(whole, 0.0, TESTS))
    assert total(fitted) <= max(60 * minutes, smallest)
    if 60 * minutes > 1.5 * smallest and fitted != whole:  # and uses what it was given
        assert total(fitted) > 0.9 * SLACK * 60 * minutes


def test_enough_time_changes_nothing_and_what_was_asked_for_stays():
    whole = plan_for(FACTS)
    assert fit(whole, COSTS, FACTS, TESTS, seconds=1e6) == whole
    fitted = fit(whole, COSTS, FACTS, TESTS, seconds=60.0, pinned={"steps", "shifted"})
    assert fitted.steps == whole.steps and fitted.shifted == whole.shifted and 0 < fitted.test < 500


def test_times_are_said_as_people_say_them():
    assert [duration(s) for s in (0.4, 99.0, 100.0, 5400.0, 6000.0)] == ["0 s", "99 s", "2 min", "90 min", "1 h 40 min"]


def test_many_pictures_cost_no_more_than_they_tell():
    """Of 50,000 pictures 2,000 are held out, and the probe is fitted on a part of the others."""
    plan = plan_for(Facts(40_000, 10_000, 200))
    assert plan.held_out == pytest.approx(0.04) and plan.probe == 10_000 and plan.steps == 3000
    facts = Facts(48_000, 2000, 200)
    small = fit(plan, COSTS, facts, TESTS, seconds=900.0)
    assert small.probe == 2000 and sum(estimate(small, COSTS, facts, TESTS).values()) < 900.0
    few = plan_for(Facts(16, 4, 200))
    assert (few.held_out, few.probe, few.batch_size, few.shifted) == (0.2, 0, 8, 4)
