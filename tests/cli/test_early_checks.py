"""Names and typos are answered without torch, from tables that are the real ones."""

import subprocess
import sys

import pytest

from meada.cli.early_checks import RECIPE, SECTIONS, TABLES, domains, fields, names
from meada.datasets import DATASETS
from meada.datasets.published.catalogue import CATALOGUE
from meada.evaluation.selection import RULES
from meada.methods import METHODS
from meada.networks import NETWORKS
from meada.reproduce.sets import RECIPES, RUNS
from meada.runs.recipe import SECTIONS as REAL_SECTIONS
from meada.runs.recipe import Recipe
from meada.spaces import SPACES

REAL = {
    "methods": METHODS,
    "networks": NETWORKS,
    "datasets": DATASETS,
    "spaces": SPACES,
    "rules": RULES,
    "sets of recipes": RECIPES,
    "sets of runs": RUNS,
}
HEAVY = """
import sys
from meada.cli.main import main
sys.argv = ["meada", *sys.argv[1:]]
try:
    main()
finally:
    print([name for name in ("torch", "scipy", "matplotlib") if name in sys.modules])
"""


@pytest.mark.parametrize("table", TABLES)
def test_names_read_from_source_are_those_of_the_table(table):
    assert names(table) == list(REAL[table])


def test_keys_and_domains_read_from_source_are_the_real_ones():
    assert fields(*RECIPE) == list(Recipe.model_fields) and domains() and set(domains()) == set(CATALOGUE)
    assert {name: fields(*SECTIONS[name]) for name in SECTIONS} == {
        name: list(model.model_fields) for name, model in REAL_SECTIONS.items()
    }


@pytest.mark.parametrize(
    "command, code, sentence",
    [
        ("list", 0, ""),
        ("list --json", 0, ""),
        ("--version", 0, ""),
        ("train digits/meda --out x", 2, "did you mean 'digits/meada'?"),
        ("train nowhere.toml --out x", 2, "unknown recipe 'nowhere.toml'"),
        ("train digits/meada --out x --set beta", 2, "the form a.b=c"),
        ("sweep digits/meda --out x", 2, "did you mean"),
        ("predict nowhere a.png", 2, "nowhere must be a folder with a run to predict, but does not exist"),
        ("predict nowhere", 2, "Missing argument"),
        ("traim", 2, "Did you mean 'train'?"),
        ("train nosuch", 2, "Missing option '--out'"),
        ("train digits/meada --out x --set plan.rouns=2", 2, "unknown key 'plan.rouns': did you mean 'rounds'?"),
        ("sweep digits/meada --out x --set pla.rounds=2", 2, "unknown key 'pla.rounds': did you mean 'plan'?"),
        ("reproduce digts", 2, "unknown set of runs 'digts': did you mean 'digits'?"),
        ("data get mnst", 2, "unknown domain 'mnst': did you mean 'mnist'?"),
        ("data check mnst", 2, "unknown domain 'mnst'"),
        ("corrupt cifr10 --out x", 2, "did you mean 'cifar10'?"),
        ("robustify --data nowhere --out x", 2, "nowhere must be a folder"),
        ("robustify --data . --test nowhere --out x", 2, "nowhere must be a folder"),
        ("evaluate nowhere", 2, "nowhere must be a folder with a run to evaluate"),
        ("evaluate . --rule lst", 2, "did you mean 'last'?"),
        ("report nowhere", 2, "nowhere must be a folder with a run to report"),
        ("watch nowhere", 2, "nowhere must be a folder with a run to watch"),
        ("robustify --data . --out x --network resnt18", 2, "did you mean 'resnet18'?"),
    ],
)
def test_nothing_heavy_is_imported_for_an_answer(command, code, sentence):
    done = subprocess.run([sys.executable, "-c", HEAVY, *command.split()], capture_output=True, text=True)
    assert done.returncode == code and sentence in done.stderr, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_terminal_s_tables_need_no_extra():
    """``meada train`` and ``evaluate`` print tables; matplotlib is installed with the extra ``report`` alone."""
    code = "import sys; sys.modules['matplotlib'] = None; import meada.reports.page.text"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
