"""Settings by the size and number of pictures; time by measured costs; a budget that is kept."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meada.methods import METHODS
from meada.robustify.budget import Costs, Sizes, estimate, fit, shrunk, told
from meada.robustify.plan import Facts, Setting, nested, plan_for

COSTS = Costs(step=0.5, climb=0.02, look=0.01, corrupt=0.02)
SIZES = Sizes(train=800, held_out=200, tests=(500, 60))
double = lambda n, rounds: n * 2**rounds


def seconds(plan, costs=COSTS, sizes=SIZES):
    return sum(estimate(plan, costs, sizes, double).values())


@given(
    images=st.integers(2, 10**6), side=st.integers(1, 5000), weights=st.booleans(),
    network=st.sampled_from(["", "alexnet", "lenet", "me.py:net"]),
    method=st.sampled_from(sorted(METHODS)),
)  # fmt: skip
def test_every_plan_can_be_run(images, side, weights, network, method):
    facts = Facts(images=images, side=side, weights=weights, network=network, method=method)
    plan = {key: one.value for key, one in plan_for(facts).items()}
    assert 28 <= plan["data.side"] <= 512
    assert 200 <= plan["plan.total_steps"] <= 4000
    assert 1 <= plan["plan.rounds"] * plan["plan.min_steps"] <= plan["plan.total_steps"]
    assert ("method.step_size" in plan) == (method in ("ada", "meada", "meada-bnn", "noise"))
    assert all(one.reason for one in plan_for(facts).values())


def test_an_ascent_without_the_entropy_is_not_given_one():
    plan = plan_for(Facts(images=100, side=100, method="ada"))
    assert "method.beta" not in plan and "method.gamma" in plan


def test_a_network_of_unknown_normalisation_climbs_in_pixels():
    small = Facts(images=100, side=32, network="me.py:net", asked_side=32)
    near, far = (plan_for(f)["method.step_size"].value for f in (replace(small, normalises=False), small))
    assert near == 0.25 * far  # what official units would bring with a Normalise(0.5, 0.5)
    for known in (True, False):  # of larger ones it does not matter
        plan = plan_for(replace(small, side=300, asked_side=224, normalises=known))
        assert plan["method.units"].value == "pixels" and plan["method.step_size"].value == 0.0005


def test_the_estimate_is_the_sum_worked_out_by_hand():
    plan = {
        key: Setting(value, "")
        for key, value in {
            "plan.total_steps": 100, "plan.rounds": 2, "method.steps": 10, "evaluation.every": 50,
            "evaluation.subset": 100, "evaluation.crafted": 20, "robustness.images": 30,
            "robustness.severities": [3, 5],
        }.items()
    }  # fmt: skip
    by_phase = estimate(plan, COSTS, SIZES, double)
    assert by_phase["minimise"] == 2 * 100 * 0.5
    assert by_phase["maximise"] == pytest.approx((800 + 1600) * 10 * 0.02)
    candidates = 2 * (100 + 100 + 60 + 5 * 20)
    whole = 3 * (200 + 560)
    corrupted = 30 * 15 * 2
    attacked = 30 * 10 * 3  # ten steps, each there and back
    looks = 2 * (candidates + whole + corrupted + 30 * 5 + attacked) + 2 * 800 + 2 * 1600
    assert by_phase["evaluate"] == pytest.approx(0.01 * looks + 0.02 * corrupted)


@given(minutes=st.floats(0.5, 200))
def test_a_fitted_plan_keeps_to_its_time_or_is_the_smallest(minutes):
    plan = plan_for(Facts(images=800, side=200))
    fitted = fit(plan, COSTS, SIZES, double, minutes=minutes)
    smallest = seconds(shrunk(plan, SIZES, 0.0))
    assert seconds(fitted) <= max(60 * minutes, smallest)
    values = {key: one.value for key, one in fitted.items()}
    assert values["plan.rounds"] * values["plan.min_steps"] <= values["plan.total_steps"]
    if 60 * minutes > 2 * smallest and fitted != plan:  # and uses most of it
        assert seconds(fitted) > 0.6 * 60 * minutes


def test_enough_time_changes_nothing_and_what_was_asked_for_stays():
    plan = plan_for(Facts(images=800, side=200))
    assert fit(plan, COSTS, SIZES, double, minutes=10_000.0) == plan
    pinned = {"plan.total_steps", "data.train", "robustness.severities", "method.steps"}
    fitted = fit(plan, COSTS, SIZES, double, minutes=1.0, pinned=pinned)
    for key in pinned - {"data.train"}:
        assert fitted[key] == plan[key]
    assert "data.train" not in fitted and "time given" in fitted["robustness.images"].reason


def test_times_are_said_as_people_say_them():
    assert [told(s) for s in (0.4, 99.0, 100.0, 5400.0, 6000.0)] == [
        "0 s",
        "99 s",
        "2 min",
        "90 min",
        "1 h 40 min",
    ]


def test_nested_keys_do_not_fall_over_one_another():
    assert nested({"a.b.c": 1, "a.b.d": 2, "a.e": 3}) == {"a": {"b": {"c": 1, "d": 2}, "e": 3}}
