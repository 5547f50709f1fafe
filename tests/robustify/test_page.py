"""The report page: the answer first, every number from the predictions, whole in one file."""

import math
import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn.functional import cross_entropy

from meada.reports.page.blocks import Chart, Table, Text
from meada.robustify.outcome import ABOUT, RULE, Outcome, judge, seconds
from meada.robustify.page import answer, counts, gallery, per_class, sections, write_report
from meada.robustify.scoring import Scores

CLASSES = ["cat", "dog", "<b>fish</b>"]
N = 30


def guessing(labels: Tensor, wrong: list[int]) -> Tensor:
    """Logits that are sure and right, but for the pictures in ``wrong``, which are taken for the next class."""
    guess = labels.clone()
    guess[wrong] = (guess[wrong] + 1) % len(CLASSES)
    return 4.0 * torch.nn.functional.one_hot(guess, len(CLASSES)).float()


@pytest.fixture
def scores(tmp_path: Path) -> Scores:
    """Three classes of ten pictures. Under corruptions plain fails on all dogs, hardened on one dog and two cats."""
    labels = torch.arange(N) % 3
    cats, dogs = list(range(0, N, 3)), list(range(1, N, 3))
    wrong = {
        "held_out": {"plain": [0], "plain_repeat": [0], "hardened": [1]},
        "corruption/snow": {"plain": dogs, "plain_repeat": dogs, "hardened": [dogs[0], *cats[:2]]},
        "corruption/gaussian_noise": {"plain": dogs, "plain_repeat": dogs, "hardened": [dogs[0], *cats[:2]]},
        "shift/weather": {"plain": dogs, "plain_repeat": dogs, "hardened": []},
        "test/shop": {"plain": dogs, "plain_repeat": dogs, "hardened": []},
    }
    for name, by in wrong.items():
        held = {f"logits/{candidate}": guessing(labels, bad) for candidate, bad in by.items()}
        save_file({"labels": labels, **held}, tmp_path / f"{name.replace('/', '.')}.safetensors")
    return Scores(tmp_path, list(wrong), ["plain", "plain_repeat", "hardened"])


@pytest.fixture
def outcome(scores: Scores, tmp_path: Path) -> Outcome:
    decision, found = judge(scores, frozenset(), 0.5)
    return Outcome(tmp_path, {
        **decision.as_json(), **found, "rule": RULE, "about": ABOUT, "classes": CLASSES,
        "seconds": seconds({"probe": 30.0, "plain": 60.0}, 20.0, 10.0),
        "temperature": {**found["temperature"], "value": 1.5, "nll_before": 1.0, "nll_after": 0.9},
    })  # fmt: skip


VIEWS = gallery(torch.rand(2, 3, 8, 8), torch.rand(2, 3, 8, 8), ["cat", "<b>fish</b>"], "about views")


def blocks(outcome: Outcome, scores: Scores, title: str) -> tuple[object, ...]:
    return {one.title: one.blocks for one in sections(outcome, scores, VIEWS)}[title]


def test_the_first_screen_answers_whether_by_how_much_and_at_what_cost(outcome: Outcome, scores: Scores) -> None:
    assert outcome.delivered == "hardened"
    said = answer(outcome)
    assert said.startswith(
        "Yes: under corruptions, the accuracy of hardened on held-out pictures is 90.0 %, that of plain"
    )
    assert "fine-tuning 66.7 %" in said and "+23.3 points" in said and "took 2 min" in said
    first, picture, warning = blocks(outcome, scores, "Is it better?")
    assert isinstance(first, Text) and first.text == said
    assert isinstance(picture, Chart) and [s.name for s in picture.series] == ["plain", "hardened"]
    assert picture.series[1].y[0] == pytest.approx(96.7) and picture.categories[-1] == "test: shop"
    assert isinstance(warning, Text) and warning.kind == "warning"


def test_a_gain_on_unchanged_pictures_alone_is_not_told_as_one_under_corruptions(outcome: Outcome) -> None:
    outcome.content["differences"]["hardened"]["corruptions"]["mean"] = -11.8
    said = answer(outcome)
    assert said.startswith("Yes on unchanged pictures, not under corruptions: on unchanged pictures, the accuracy of")
    assert "; under corruptions, it is 90.0 % against 66.7 % (-11.8 points" in said


def test_where_plain_is_delivered_the_page_says_so(outcome: Outcome, scores: Scores) -> None:
    outcome.content.update(delivered="plain", verdict="Delivered: plain. Within noise.")
    said = answer(outcome)
    assert said.startswith("No: plain fine-tuning is delivered. Within noise.")
    assert "the accuracy of hardened and plain is 100.0 % and 66.7 % on shop" in said
    (_, picture, _) = blocks(outcome, scores, "Is it better?")
    assert isinstance(picture, Chart) and [s.name for s in picture.series] == ["plain", "hardened"]
    titles = [one.title for one in sections(outcome, scores, VIEWS)]
    assert "Classes" in titles and "Confusion under corruptions" in titles
    (chart, *_) = blocks(outcome, scores, "Corruptions and shifts")
    assert isinstance(chart, Chart) and [s.name for s in chart.series] == ["plain", "hardened"]


def test_tables_name_the_pictures_in_the_words_of_the_first_table(outcome: Outcome, scores: Scores) -> None:
    tables = [one for one in blocks(outcome, scores, "Candidates") if isinstance(one, Table)]
    tables += [one for one in blocks(outcome, scores, "Calibration") if isinstance(one, Table)]
    assert {row[1] for table in tables[1:] for row in table.rows} <= set(tables[0].columns)
    assert ("hardened", "test: shop") in {row[:2] for row in tables[1].rows}


def test_scores_of_the_delivered_model_are_with_its_temperature(
    scores: Scores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("meada.robustify.outcome.temperature", lambda *_: {"value": 1.5})
    _, found = judge(scores, frozenset(), 0.5)
    scale, one = found["temperature"]["value"], found["candidates"]["hardened"]["held_out"]
    logits = scores.logits("hardened", "held_out").double() / scale
    assert one["nll"] == pytest.approx(float(cross_entropy(logits, scores.labels("held_out"))), rel=1e-6)
    raw = float(cross_entropy(scores.logits("hardened", "held_out").double(), scores.labels("held_out")))
    assert found["temperature"]["unscaled"]["held_out"]["nll"] == pytest.approx(raw, rel=1e-6)
    assert found["candidates"]["plain"] == scores.of("plain")


def test_classes_that_got_worse_are_named_and_come_first(outcome: Outcome, scores: Scores) -> None:
    said, table = blocks(outcome, scores, "Classes")
    assert isinstance(said, Text) and "1 of 3 classes" in said.text and "fine-tuning: cat." in said.text
    assert isinstance(table, Table)
    assert table.rows[0][:5] == ("cat", 20, 100.0, 80.0, -20.0)
    assert table.rows[-1][:5] == ("dog", 20, 0.0, 90.0, 90.0)
    assert table.rows[0][5:] == (90.0, 100.0)  # on unchanged pictures


def test_per_class_accuracies_average_to_the_accuracy(outcome: Outcome, scores: Scores) -> None:
    rows = per_class(outcome, scores, scores.group("corruption/"))
    n = sum(row[1] for row in rows)
    assert sum(row[1] * row[3] for row in rows) / n == pytest.approx(
        outcome.content["candidates"]["hardened"]["corruptions"]["mean"]
    )


def test_confusion_counts_every_picture_once_per_corruption(outcome: Outcome, scores: Scores) -> None:
    table = counts(scores, "plain", 3)
    assert table.sum() == 2 * N and table[1].tolist() == [0, 0, 20]  # every dog is a fish
    _, before, after = blocks(outcome, scores, "Confusion under corruptions")
    assert isinstance(before, Chart) and before.series[1].y == (0.0, 0.0, 100.0)
    assert isinstance(after, Chart) and after.series[1].y == (0.0, 90.0, 10.0)


def test_reliability_is_that_of_the_delivered_temperature(outcome: Outcome, scores: Scores) -> None:
    charts = [one for one in blocks(outcome, scores, "Calibration") if isinstance(one, Chart)]
    plain, delivered = charts[1].series
    sure = lambda t: 100 / (1 + 2 * math.exp(-4 / t))
    assert plain.x == (pytest.approx(sure(1.0), rel=1e-6),) and plain.y == (pytest.approx(200 / 3),)
    assert delivered.x == (pytest.approx(sure(1.5), rel=1e-6),) and delivered.y == (90.0,)


def test_many_classes_are_told_by_their_worst_pairs(
    outcome: Outcome, scores: Scores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("meada.robustify.page.MOST_CLASSES", 2)
    (table,) = blocks(outcome, scores, "Confusion under corruptions")
    assert isinstance(table, Table) and table.rows[0] == ("plain", "dog", "<b>fish</b>", 100.0)


def test_the_file_is_whole_and_escaped(outcome: Outcome, scores: Scores) -> None:
    write_report(outcome, scores, VIEWS)
    page = (outcome.out / "report.html").read_text()
    assert "<b>fish" not in page and "about views" in page
    assert page.count("data:image/png") >= 4
    assert not re.search(r"(src|href)=[\"']?(https?:|//)", page)
    for title in ("Is it better?", "Hard views", "Classes", "Calibration", "Time"):
        assert title in page
