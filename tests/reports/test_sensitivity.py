"""The study of the settings: which run changes what, ranked by what it does."""

import json
from math import sqrt
from statistics import mean, stdev

import pytest
from scipy.special import stdtrit

from meada.reports.page.blocks import Chart, Table, Text
from meada.reports.page.sensitivity import Study, grouped, of_study, place, sensitivity
from meada.reports.runs import find_runs
from meada.reproduce.sets import STUDY, short
from meada.runs.recipe import load_recipe, to_toml

DOMAINS = ("svhn", "mnist_m", "usps")


def told(runs) -> str:
    blocks = sensitivity(runs, DOMAINS).blocks
    texts = [block.text for block in blocks if isinstance(block, Text)]
    rows = [" | ".join(map(str, row)) for block in blocks if isinstance(block, Table) for row in block.rows]
    return "\n".join([*texts, *rows])


def charts(runs) -> dict[str, Chart]:
    found = [block for block in sensitivity(runs, DOMAINS).blocks if isinstance(block, Chart)]
    return {chart.name.removeprefix("sensitivity-"): chart for chart in found}


ENVIRONMENT = {"threads": 1, "processor": "some CPU"}


@pytest.fixture
def make(tmp_path):
    def run(recipe, value):
        folder = tmp_path / str(len([*tmp_path.iterdir()]))
        folder.mkdir()
        (folder / "recipe.toml").write_text(to_toml(recipe))
        results = {d: {"accuracy": value, "n": 10} for d in ("svhn", "mnist_m", "usps")}
        record = {
            "recipe": recipe.name, "seed": recipe.seed,
            "method": recipe.method["name"], "steps": 1000, "seconds": {"minimise": 120.0},
            "environment": ENVIRONMENT, "results": {"last": results}, "rounds": [],
        }  # fmt: skip
        (folder / "record.json").write_text(json.dumps(record))
        return find_runs([folder])[0]

    return run


@pytest.fixture
def runs(make):
    return [
        make(short("erm", [], 0).recipe, 40.0),
        make(short("meada", [], 0).recipe, 50.0),
        make(short("meada", [], 1).recipe, 52.0),
        make(short("meada", ["method.beta=100.0"], 0).recipe, 53.0),
        make(short("meada", ["method.beta=0.0"], 0).recipe, 48.0),
        make(short("meada", ["method.grow=source"], 0).recipe, 41.0),
    ]


def test_each_run_has_its_place(runs, make):
    assert [place(run) for run in runs] == [
        ("erm", ""), ("centre", ""), ("centre", ""), ("beta", 100.0), ("beta", 0.0),
        ("grow", "source"),
    ]  # fmt: skip
    two = make(short("meada", ["method.beta=1.0", "method.steps=5"], 0).recipe, 0.0)
    longer = make(short("meada", ["plan.total_steps=2000"], 0).recipe, 0.0)
    table1 = make(load_recipe("digits/meada"), 0.0)
    assert of_study([*runs, two, longer, table1]) == runs


def test_the_centre_is_a_value_of_every_setting(runs):
    groups = grouped(runs)
    assert [*groups["beta"]] == [0.0, 10.0, 100.0]
    assert all(len(groups[k][STUDY[k][0]]) == 2 for k in STUDY)
    study = Study(runs, DOMAINS)
    assert study.reach("beta") == pytest.approx(53 - 48)
    assert study.reach("grow") == pytest.approx(50 - 41)  # the centre's second seed is left out


def test_the_widest_reach_comes_first_and_gaps_are_told(runs):
    text = told(runs)
    assert text.index("growth rule (9.0 points)") < text.index("beta (5.0 points)")
    assert "too few settings have two seeds" in text
    assert "beta | 10 (paper) | 51.00 ± 1.41" in text and "(ERM) |  | 40.00" in text
    assert "gamma (" not in text  # one value alone has no reach
    assert "Without a finished run: beta = 1.0, gamma = 0.0" in text


def test_what_chance_does_is_a_paired_t_test_for_two_values(runs, make):
    """Of two means the studentised range is sqrt(2) times Student's t of the paired differences."""
    more = [*runs, make(short("meada", ["method.grow=source"], 1).recipe, 45.0)]
    study, paired = Study(more, DOMAINS), [50.0 - 41.0, 52.0 - 45.0]
    assert study.reach("grow") == pytest.approx(mean(paired))
    assert study.noise == (pytest.approx(stdev(paired) / sqrt(2)), 1)
    want = stdtrit(1, 0.975) * stdev(paired) / sqrt(2)
    assert study.chance("grow") == pytest.approx(want, rel=1e-3)
    text = told(more)
    assert f"growth rule (8.0 points, within the {want:.1f} of chance)" in text
    assert "is 1.0 points (1 degrees of freedom)" in text


def test_a_seed_that_lifts_all_alike_is_no_noise(make):
    lifted = [
        make(short("meada", change, seed).recipe, 40.0 + 7.0 * seed + 2.0 * len(change))
        for change in ([], ["method.beta=100.0"], ["method.grow=source"])
        for seed in (0, 1)
    ]
    assert Study(lifted, DOMAINS).noise == (pytest.approx(0.0, abs=1e-9), 2)


def test_a_chart_for_each_setting_that_was_varied(runs):
    drawn = charts(runs)
    assert {*drawn} == {"beta", "grow"}
    each, means, erm = drawn["beta"].series
    assert drawn["beta"].categories == ("0", "10 (paper)", "100")
    assert means.y == pytest.approx((48.0, 50.0, 53.0))  # seed 0, which all three have
    assert (each.x, each.y) == ((0, 1, 1, 2), pytest.approx((48.0, 50.0, 52.0, 53.0)))
    assert erm.y == pytest.approx((40.0, 40.0)) and drawn["grow"].series[1].loose  # names have no order
    assert drawn["beta"].table().rows[2][:2] == ("each run", "10 (paper)")


def test_values_without_a_common_seed_are_not_compared(runs, make):
    elsewhere = make(short("meada", ["method.steps=5"], 7).recipe, 45.0)
    assert "T_max (steps) (" not in told([*runs, elsewhere])
    assert {*charts([*runs, elsewhere])} == {"beta", "grow"}
