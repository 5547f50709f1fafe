"""The pages under results/ say what their records say: each is made again and compared."""

from pathlib import Path

import pytest

from meada.reports import table1, table2, table3
from meada.reports.runs import find_runs

ROOT = Path(__file__).parents[2]
RESULTS = Path("results")  # as the commands have it: pages name their records' recipes
REPRODUCE = "meada reproduce digits --out results/digits"
PAGES = {
    "README.md": lambda: table1.page(records("digits", "sensitivity"), REPRODUCE),
    "pacs/README.md": lambda: table2.markdown(records("pacs")),
    "cifar10c-small/README.md": lambda: table3.page(records("cifar10c-small"), "last"),
    "cifar10c-networks/README.md": lambda: table3.page(records("cifar10c-networks"), "last"),
}


def records(*folders):
    return find_runs([RESULTS / folder for folder in folders])


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_what_its_records_make(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    advice = f"results/{page} is not what its records make: see Results in CONTRIBUTING.md"
    assert (RESULTS / page).read_text() == PAGES[page](), advice
