"""Names and typos are answered without torch, from tables that are the real ones."""

import subprocess
import sys

import pytest

from meada.cli.quick import TABLES, names
from meada.datasets import DATASETS
from meada.evaluation.selection import RULES
from meada.methods import METHODS
from meada.networks import NETWORKS
from meada.spaces import SPACES

REAL = {"methods": METHODS, "networks": NETWORKS, "datasets": DATASETS, "spaces": SPACES, "rules": RULES}
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
        ("predict nowhere a.png", 2, "nowhere holds no run to predict: there is no such folder"),
        ("evaluate nowhere", 2, "nowhere holds no run to evaluate"),
        ("evaluate . --rule lst", 2, "did you mean 'last'?"),
        ("report nowhere", 2, "nowhere holds no run to report"),
        ("watch nowhere", 2, "nowhere holds no run to watch"),
        ("robustify --data . --out x --network resnt18", 2, "did you mean 'resnet18'?"),
    ],
)
def test_nothing_heavy_is_imported_for_an_answer(command, code, sentence):
    done = subprocess.run([sys.executable, "-c", HEAVY, *command.split()], capture_output=True, text=True)
    assert done.returncode == code and sentence in done.stderr, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
