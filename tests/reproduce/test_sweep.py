"""Grids of settings: keys found, runs named, refused with a reason; and on a real Ray cluster."""

import json
import os
from functools import partial
from threading import Thread

import pytest
from tests_tiny import load_tiny, network_of, write_recipe
from tests_waiting import wait_for
from typer.testing import CliRunner

from meada.cli.main import app
from meada.errors import MeadaError
from meada.reproduce import Item
from meada.reproduce.on_ray import End, _brought_back, _connected, on_ray, work
from meada.reproduce.runner import Outcome, refuse_settings
from meada.reproduce.sets import sweep
from meada.runs.recipe import load_recipe, to_toml


def test_a_grid_is_every_choice_with_every_seed():
    items = sweep("digits/meada", ["beta=1,10", "plan.rounds=1,2"], 2, ["descent.lr=0.1"])
    cells = [(i.recipe.seed, i.recipe.method["beta"], i.recipe.plan.rounds) for i in items]
    assert cells == [(s, b, k) for s in (0, 1) for b in (1, 10) for k in (1, 2)]
    assert len({i.name for i in items}) == 8
    assert {i.recipe.descent.lr for i in items} == {0.1}
    paper = Item(load_recipe("digits/meada"))
    assert paper.name in {i.name for i in sweep("digits/meada", ["beta=1,10"], 1, [])}


@pytest.mark.parametrize(
    "grid, sentence",
    [
        (["beta"], "--grid must be key=value,value"),
        (["beta=1,,2"], "must be key=value,value, as in beta=1,10,100, got beta=1,,2"),
        (["betta=1,2"], "must name a key of the recipe, got betta"),
        (["train=1,2", "every=0"], "evaluation.every"),
        (["seed=1,2"], "use --seeds for the number"),
        (["beta=1,2", "method.beta=3"], "must name each key once"),
    ],
)
def test_bad_grids_are_one_sentence(grid, sentence):
    with pytest.raises(MeadaError, match=sentence):
        sweep("digits/meada", grid, 1, [])


def test_bad_engines_are_one_sentence():
    with pytest.raises(MeadaError, match="unknown engine 'rai'"):
        refuse_settings("rai", 1, 1, "")
    with pytest.raises(MeadaError, match="--address must be used with --engine ray"):
        refuse_settings("local", 1, 1, "h:1")
    with pytest.raises(MeadaError, match="--cores must be 1 or more, got 0"):
        refuse_settings("ray", 1, 0, "")


def test_the_verb_lists_and_runs(tmp_path):
    recipe = str(write_recipe(tmp_path, method="erm", settings="", total_steps=12))
    words = ["sweep", recipe, "--grid", "lr=0.01,0.02", "--out", str(tmp_path / "out"), "--network", network_of(recipe)]
    listed = CliRunner().invoke(app, [*words, "--dry-run"])
    assert listed.exit_code == 0 and listed.output.count("to run") == 2 and not (tmp_path / "out").exists()
    assert "to run  descent.lr=0.01\n" in listed.output and "to run  descent.lr=0.02\n" in listed.output
    ran = CliRunner().invoke(app, [*words, "--jobs", "2"])
    assert ran.exit_code == 0, ran.output
    again = CliRunner().invoke(app, words)
    assert "2 done before, 0 to go" in again.output
    lrs = {load_tiny(p).descent.lr for p in (tmp_path / "out").glob("*/recipe.toml")}
    assert lrs == {0.01, 0.02}


STUB = """
import json, sys
from pathlib import Path
out = Path(sys.argv[1])
out.mkdir(parents=True)
(out / "recipe.toml").write_text(sys.argv[2])
(out / "checkpoint.pt").write_text("large")
(out / "record.json").write_text(json.dumps({"seconds": {"minimise": 1.0}}))
"""


def stub(item, out):
    import sys

    return [sys.executable, "-c", STUB, str(item.folder(out).path), to_toml(item.recipe)]


def test_a_node_without_the_folder_sends_the_small_files_back(tmp_path):
    item = Item(load_tiny(write_recipe(tmp_path, method="erm", settings="")))
    end = End(**work(to_toml(item.recipe), str(tmp_path / "nowhere"), "token", 1, stub))
    assert end.files.keys() == {"recipe.toml", "record.json"} and end.code == 0
    assert list(end.files)[-1] == "record.json"  # written last: with it the run is done
    outcome = Outcome()
    assert _brought_back(item, tmp_path / "out", end, outcome).startswith("done")
    assert item.done(tmp_path / "out") and not outcome.failed
    lost = _brought_back(item, tmp_path / "out", End(1, "the loss is not finite", 1.0), outcome)
    assert lost == "failed: the loss is not finite" and list(outcome.failed) == [item.name]


def test_ray_leaves_runs_their_priority():
    """Ray's own default of 15 made a run on a busy machine thirty times slower than its neighbours."""
    pytest.importorskip("ray", reason="needs Ray: pip install 'meada[ray]'")
    ray = _connected("local")  # a cluster of its own, whatever else runs here
    try:
        assert ray.get(ray.remote(num_cpus=1)(lambda: os.nice(0)).remote()) == os.nice(0)
    finally:
        ray.shutdown()


@pytest.fixture
def two_nodes(monkeypatch):
    monkeypatch.setenv("RAY_worker_niceness", "0")  # as where meada starts Ray itself
    utils = pytest.importorskip("ray.cluster_utils", reason="needs Ray: pip install 'meada[ray]'")
    cluster = utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    yield cluster, nodes
    import ray

    ray.shutdown()
    cluster.shutdown()


def test_runs_of_a_node_that_is_killed_are_tried_again(tmp_path, two_nodes):
    cluster, nodes = two_nodes
    gate = tmp_path / "gate"  # the runs stop halfway until it is there, however fast or slow the machine is
    path = str(write_recipe(tmp_path, net="gated", method="erm", settings="", total_steps=20))
    items = [Item(load_tiny(path, [f"network.gate={gate}"], seed=seed)) for seed in (0, 1)]
    out, said, ended = tmp_path / "out", [], []
    run = partial(on_ray, items, out, say=said.append, address=cluster.address)
    driver = Thread(target=lambda: ended.append(run()))
    driver.start()
    wait_for(lambda: all(item.folder(out).checkpoint.exists() for item in items) or ended)
    assert not any(item.done(out) for item in items)
    cluster.remove_node(nodes[1], allow_graceful=False)
    gate.touch()
    driver.join()  # its own patience ends it
    assert ended and not ended[0].failed and not ended[0].elsewhere, (said, ended)
    assert all(item.done(out) for item in items)
    for item in items:
        told = [json.loads(line) for line in item.folder(out).log.open()]
        log = [(line["step"], "round" in line) for line in told]
        assert log == sorted(set(log)) and log[-1] == (20, False)  # resumed, nothing twice
    said.clear()
    assert run() == Outcome() and said == ["2 runs, 2 done before, 0 to go"]
