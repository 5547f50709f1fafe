"""The suite's table: every case can be called as it stands there, and floors name real ratios."""

import inspect

import pytest
from benchmarks import suite
from benchmarks.floors import fallen, load_floors
from benchmarks.measure import Result, Spread
from benchmarks.subjects import SUBJECTS
from benchmarks.suite import CASES, Case, choose, run_suite

from meada.errors import MeadaError


@pytest.mark.parametrize("name", CASES)
def test_sizes_fit_their_functions(name):
    case = CASES[name]
    assert case.full.keys() == case.quick.keys() and case.full["rounds"] >= 3
    subject = [None] if case.subject else []
    inspect.signature(case.run).bind(*subject, **case.full, tell=None)
    assert case.subject is None or case.subject in SUBJECTS


def test_every_phase_has_its_three_networks():
    for family in ("maximise", "minimise", "evaluate", "blocks"):
        assert choose([family]) == [f"{family}-{network}" for network in SUBJECTS]


def test_sweeps_run_only_when_asked_for():
    assert choose([]) == [name for name in CASES if not name.startswith("blocks")]
    assert choose(["data", "data", "gemm"]) == ["data", "gemm"]


def test_an_unknown_case_is_named():
    with pytest.raises(MeadaError, match="unknown case 'maximize': did you mean 'maximise'"):
        choose(["maximize"])


@pytest.mark.parametrize("quick", [False, True])
def test_a_record_names_machine_sizes_and_cases(monkeypatch, quick):
    def run(n, rounds, tell):
        tell(rounds, rounds)
        return Result(about="", unit="s", rounds=rounds, sides={"a": Spread.of([float(n)])})

    monkeypatch.setattr(suite, "CASES", {"one": Case(run, {"n": 9, "rounds": 3}, {"n": 2, "rounds": 1})})
    told = []
    record = run_suite(["one"], quick=quick, tell=lambda *what: told.append(what))
    assert {"processor", "threads", "torch", "cores"} <= record["environment"].keys()
    assert record["quick"] is quick
    assert record["cases"]["one"]["sides"]["a"]["median"] == (2.0 if quick else 9.0)
    assert told[0] == ("one", 0, 1 if quick else 3)


def test_floors_are_for_cases_of_the_suite():
    floors = load_floors()
    assert floors.keys() <= CASES.keys()
    known = {"published", "peak", "loaders", "without evaluation"}
    known |= {"agreement", "agreement_float64"}
    assert all(v.keys() <= known for v in floors.values())
    for name in SUBJECTS:
        assert floors[f"maximise-{name}"]["agreement_float64"] >= 0.999


def record_of(**ratios):
    spreads = {name: {"median": value} for name, value in ratios.items()}
    return {"cases": {"data": {"ratios": spreads, "facts": {"agreement": 0.9985}}}}


def test_what_fell_below_is_named_and_the_rest_is_not():
    floors = {"data": {"published": 2.0, "agreement": 0.999}, "run": {"published": 4.0}}
    assert fallen(record_of(published=2.0), floors) == ["data: agreement is 0.99850, its floor is 0.999"]
    below = fallen(record_of(published=1.994), floors)
    assert below[0] == "data: published is 1.99, its floor is 2" and len(below) == 2


def test_a_ratio_that_is_no_number_is_below_every_floor():
    assert fallen(record_of(published=float("nan")), {"data": {"published": 0.0}})


def test_a_floor_for_nothing_is_refused(tmp_path):
    with pytest.raises(MeadaError, match="one of its ratios, published, agreement, got 'speed'"):
        fallen(record_of(published=1.0), {"data": {"speed": 1.0}})
    bad = tmp_path / "floors.toml"
    bad.write_text("data = 3")
    with pytest.raises(MeadaError, match="'data' must be a table of numbers"):
        load_floors(bad)
    bad.write_text("data = ")
    with pytest.raises(MeadaError, match="not TOML"):
        load_floors(bad)
