"""Table 1 against numbers worked out by hand."""

import pytest

from meada.evaluation.statistics import standard_errors_apart, summarise
from meada.reports.table1 import comparisons, markdown, paper, summary


def record(method, seed, svhn, mnist_m, usps, rounds=3):
    domains = {"svhn": svhn, "mnist_m": mnist_m, "usps": usps}
    results = {name: {"accuracy": value} for name, value in domains.items()}
    rules = ("last", "source_val", "crafted", "oracle")
    return {
        "recipe": f"digits/{method}", "method": method, "seed": seed, "rounds": [{}] * rounds,
        "results": {rule: results for rule in rules},
    }  # fmt: skip


RECORDS = [
    record("erm", 0, 30.0, 50.0, 80.0),
    record("erm", 1, 32.0, 50.0, 80.0),
    record("meada", 0, 40.0, 60.0, 80.0),
    record("meada", 1, 44.0, 60.0, 80.0),
    record("meada", 0, 99.0, 99.0, 99.0, rounds=1),  # of Figure 1
]


def test_the_mean_is_over_targets_then_over_runs():
    got = summary(RECORDS[:2], "last", "mean")
    assert got.mean == pytest.approx((160 / 3 + 162 / 3) / 2) and got.n == 2


def test_the_papers_means_over_the_same_three():
    means = {m: round(paper(m, "mean"), 2) for m in ("erm", "par", "ada", "meada", "meada-bnn")}
    assert means == {"erm": 55.94, "par": 59.06, "ada": 58.25, "meada": 61.69, "meada-bnn": 62.29}


def test_runs_with_another_k_stay_out():
    text = markdown(RECORDS, "meada reproduce digits")
    assert "99.00" not in text and "| meada | last | 42.00 ± 2.83 |" in text
    assert "| meada | *paper* (oracle) | 42.00 |" in text and "meada reproduce digits" in text


def test_differences_are_told_with_their_errors():
    lines = comparisons(RECORDS)
    svhn = next(line for line in lines if "svhn" in line)
    a, b = summarise([40.0, 44.0]), summarise([30.0, 32.0])
    assert f"+11.00 ({standard_errors_apart(a, b):+.1f} standard errors)" in svhn
    one = comparisons([RECORDS[0], RECORDS[2]])
    assert all("one seed: nothing can be said" in line for line in one)


def test_the_page_says_what_was_spent_and_what_is_missing():
    from meada.reports.table1 import page

    more = {"steps": 10_000, "seconds": {"minimise": 600.0, "maximise": 1200.0},
            "environment": {"threads": 2, "processor": "some CPU"}}  # fmt: skip
    text = page([{**RECORDS[2], **more}], "meada reproduce digits")
    assert "10,000 steps, 30 min on 2 threads of some CPU" in text and "SYN cannot be had" in text
