"""The pages under results/ say what their records say: each is made again and compared."""

import json
from pathlib import Path

import pytest
from benchmarks.robustify_records import markdown

from meada.evaluation.predictions import load_predictions
from meada.evaluation.score import calibration_gap
from meada.reports.page import build, table, to_markdown
from meada.reports.page.charts import picture_files
from meada.reports.runs import find_runs

ROOT = Path(__file__).parents[2]
RESULTS = Path("results")  # as the commands have it: pages name their records' recipes
PAGES = {  # page -> the table (None: the whole report), and folders of records
    "README.md": (1, "digits", "sensitivity"),
    "pacs/README.md": (2, "pacs"),
    "cifar10c-small/README.md": (3, "cifar10c-small"),
    "cifar10c-networks/README.md": (3, "cifar10c-networks"),
    "quickstart/README.md": (None, "quickstart"),
    "pacs-photo/README.md": (None, "pacs-photo"),
}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_what_its_records_make(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    number, *folders = PAGES[page]
    runs = find_runs([RESULTS / folder for folder in folders])
    if number is None:
        made = build(runs, command=f"meada report results/{folders[0]}")
    else:
        made = table(runs, number, command="meada reproduce digits --out results/digits")
    home = (RESULTS / page).parent
    pictures = picture_files(made, home / "figures")
    assert all(path.is_file() for path in pictures.values()), "a figure is missing: see Results in CONTRIBUTING.md"
    advice = f"results/{page} is not what its records make: see Results in CONTRIBUTING.md"
    assert (RESULTS / page).read_text() == to_markdown(made, pictures, home), advice


def test_the_page_of_robustify_is_what_its_records_make():
    advice = "results/robustify/README.md is not what its records make: python -m benchmarks.robustify_records"
    assert (ROOT / "results/robustify/README.md").read_text() == markdown(ROOT / "results/robustify"), advice


def test_records_follow_from_their_predictions():
    """Accuracy to the image, and calibration error to the 16 bits that are kept of a confidence."""
    files = sorted((ROOT / "results").glob("*/*/predictions.safetensors"))
    assert files
    for file in files:
        record = json.loads((file.parent / "record.json").read_text())
        domains = load_predictions(file)[0]["last"]
        for name, scores in record["results"]["last"].items():
            kept = domains[name]
            right = (kept["guess"] == kept["label"]).double()
            assert len(right) == scores["n"] and 100 * float(right.mean()) == pytest.approx(scores["accuracy"], 1e-9)
            assert calibration_gap(kept["confidence"].double(), right) == pytest.approx(scores["ece"], abs=2e-3)


def test_records_of_the_first_commits_are_still_read():
    """Every committed record is found, with the accuracy that its file says."""
    runs = find_runs([ROOT / "results"])
    assert len(runs) > 80
    for run in runs:
        held = json.loads((run.folder.path / "record.json").read_text())
        for domain, scores in held["results"]["last"].items():
            assert run.score("last", domain, ()) == scores["accuracy"]
