"""Bytes and hours against sums done by hand."""

import json
import subprocess
import sys

import pytest
from benchmarks.report import BEGIN, END
from benchmarks.scaling import climbed, gigabytes, page, rates, rows


@pytest.fixture
def record():
    def case(value):
        return {"sides": {"meada": {"median": value}}}

    cases = {
        "maximise-wideresnet": case(150.0),  # ms for 15 steps of an image: 10 ms each
        "minimise-wideresnet": case(1280.0),
        "maximise-alexnet": case(300.0),
        "minimise-alexnet": case(800.0),
    }
    environment = dict.fromkeys(("processor", "cores", "threads", "cpu_capability", "torch", "meada"), "x")
    return {"cases": cases, "environment": environment, "quick": False}


def test_rates_are_of_one_step(record):
    assert rates(record, "wideresnet") == pytest.approx((0.010, 1.28))


def test_cifar_by_hand(record):
    """Two rounds of the pool: 50,000 + 100,000 images climb 15 steps of 10 ms: 6.25 h."""
    line = next(r for r in rows(record) if r[:3] == ["CIFAR", "2", "pool"])
    assert line[3:] == ["200,000", "614 MB", "461 MB", "150,000", "6.2 h", "33 min"]


def test_imagenet_by_hand(record):
    """One round doubles 1,281,167 images of 150,528 bytes; 15 steps of 20 ms each."""
    line = next(r for r in rows(record) if r[:2] == ["ImageNet-1k", "1"])
    assert line[3:7] == ["2,562,334", "385.7 GB", "192.9 GB", "1,281,167"]
    assert line[7] == "4.4 days"


def test_the_rules_of_the_paper_and_of_its_code_differ_from_the_second_round_on():
    for rounds, pool, latest in ((1, 10, 10), (2, 30, 20), (3, 70, 30)):
        assert climbed(10, rounds, "pool") == pool
        assert climbed(10, rounds, "latest") == climbed(10, rounds, "source") == latest
    assert gigabytes(1, 1000) == pytest.approx(0.003)


def test_the_page_is_renewed_from_a_record(record, tmp_path):
    source, target = tmp_path / "results.json", tmp_path / "scaling.md"
    source.write_text(json.dumps(record))
    target.write_text(f"# Scaling\n{BEGIN}\nold\n{END}\nrest\n")
    command = [sys.executable, "-m", "benchmarks.scaling", str(source), str(target)]
    subprocess.run(command, check=True, capture_output=True)
    text = target.read_text()
    assert "old" not in text and text.endswith("rest\n") and str(source) in text
    assert page(record, str(source)) in text
