"""Numbers of the page that follow from a record by hand: time, cores, and what is pooled or chosen."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tests_records import write_run

from meada.reports.page.cost import core_hours, reached, seconds_at, training_seconds
from meada.reports.page.groups import experiments
from meada.reports.page.robustness import corruptions, reliability
from meada.reports.runs import find_runs, read_run


def changed(path: Path, **values: Any) -> Path:
    record = json.loads((path / "record.json").read_text())
    (path / "record.json").write_text(json.dumps({**record, **values}))
    return path


def test_core_hours_are_seconds_times_threads(tmp_path):
    """8.5 seconds on one thread and on four."""
    one, four = (write_run(tmp_path, seed=seed) for seed in (0, 1))
    changed(four, environment={"threads": 4, "processor": "a chip"})
    assert core_hours(read_run(one)) == pytest.approx(8.5 / 3600)
    assert core_hours(read_run(four)) == pytest.approx(4 * 8.5 / 3600)


def test_training_time_counts_a_round_once_it_is_over_and_no_evaluation(tmp_path):
    """300 steps in 5 seconds; the first round comes after step 50 and takes 2.5 seconds."""
    run = read_run(write_run(tmp_path, "meada", rounds=1))
    assert training_seconds(run) == 7.5
    assert seconds_at(run, 50) == pytest.approx(5 * 50 / 300)
    assert seconds_at(run, 51) == pytest.approx(5 * 51 / 300 + 2.5)
    assert reached(run, 5 * 100 / 300 + 2.5) == (100, 50.0) and reached(run, 1.0) is None


def test_reliability_is_over_all_seeds_and_domains(tmp_path):
    for seed, skill in ((0, 0.0), (1, 9.0)):
        write_run(tmp_path, "meada", seed=seed, skill=skill, images=200)
    (one,) = experiments(find_runs([tmp_path]))
    group = one.groups[0]
    parts = [run.predictions("last")[name] for run in group.runs for name in one.domains]
    confidence = torch.cat([part["confidence"].double() for part in parts])
    right = torch.cat([part["guess"] == part["label"] for part in parts]).double()
    line = reliability(group, one.domains, "last")
    for tenths, at in ((4, -6), (9, -1)):  # (0.4, 0.5] and (0.9, 1]
        here = (confidence * 10 > tenths) & (confidence * 10 <= tenths + 1)
        assert line.y[at] == pytest.approx(100 * float(right[here].mean()))
        assert line.x[at] == pytest.approx(100 * float(confidence[here].mean()))


@pytest.mark.parametrize("rule, told", [("last", "70.0 %"), ("oracle", "95.0 %")])
def test_accuracy_without_corruption_is_that_of_the_rule(tmp_path, rule, told):
    path = write_run(tmp_path, severities=5, images=10, data="cifar10", network="wideresnet")
    scores = {"accuracy": 70.0, "n": 10}
    changed(path, clean={"last": scores, "oracle": {**scores, "accuracy": 95.0}})
    (one,) = experiments(find_runs([tmp_path]))
    assert f"Without corruption: ERM {told}" in corruptions(one, rule).blocks[0].text
