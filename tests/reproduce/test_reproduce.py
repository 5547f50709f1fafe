"""Sets of runs: named by content, run once, carried on, failures told."""

import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack, redirect_stdout
from functools import partial
from io import StringIO
from itertools import product
from pathlib import Path
from threading import Thread

import pytest
from tests_tiny import load_tiny, network_of, write_recipe
from tests_waiting import wait_for
from typer.testing import CliRunner

from meada.cli.main import app
from meada.errors import MeadaError
from meada.reproduce import Item
from meada.reproduce.cost import Costs, estimated_seconds, expected_seconds, megabytes, time_left
from meada.reproduce.runner import die_with_parent, reproduce
from meada.reproduce.sets import RECIPES, RUNS, STUDY, TABLE3, items_of, seeds_by_method
from meada.runs.recipe import load_recipe, to_toml

STUB = """
import json, os, sys
from pathlib import Path
out, toml, how = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
print("a warning", file=sys.stderr)
print("x" * 200_000, file=sys.stderr)  # more than a pipe holds
if how != "good":
    sys.exit(how)
out.mkdir(parents=True, exist_ok=True)
(out / "recipe.toml").write_text(toml)
threads = int(os.environ["OMP_NUM_THREADS"])
(out / "record.json").write_text(json.dumps({"seconds": {"minimise": 60.0}, "threads": threads}))
"""

SET_OF_ONE = """
import sys
from pathlib import Path
from meada.runs.recipe import load_recipe
from meada.reproduce import Item
from meada.reproduce.runner import reproduce
item, out = Item(load_recipe(sys.argv[1], [], trust=[sys.argv[3]], seed=0)), Path(sys.argv[2])
sleeper = f"import os, time; open('{out}/pid', 'w').write(str(os.getpid())); time.sleep(1500)"
reproduce([item], out, jobs=1, say=print, command=lambda *_: [sys.executable, "-c", sleeper])
"""


def stub(fate=None):
    """A run that does at once what it is told to, in place of training."""

    def command(item, out):
        how = (fate or {}).get(item.name, "good")
        folder = item.folder(out).path
        return [sys.executable, "-c", STUB, str(folder), to_toml(item.recipe), how]

    return command


@pytest.fixture
def tiny(tmp_path):
    path = str(write_recipe(tmp_path, method="erm", settings="", total_steps=12))
    return lambda seed=0, *changes: Item(load_tiny(path, [*changes], seed=seed))


def running(pid):
    """Whether there is such a process, and not only what is left of it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def names(*request):
    return {item.name for item in items_of(*request)}


def test_names_come_from_content():
    one, two = (Item(load_recipe("digits/meada", seed=s)) for s in (0, 0))
    other = Item(load_recipe("digits/meada", ["method.beta=1.0"], seed=0))
    assert one.name == two.name != other.name and one.name.startswith("digits-meada-seed0-")


def test_table_1_and_figure_1_share_runs():
    table = names("digits", ["erm", "meada"], 2, [])
    figure = names("figure1", ["meada"], 2, [])
    assert len(table) == 4 and len(figure) == 2 * (1 + 3)
    assert table <= figure  # ERM is K = 0, and K = 3 is the table's own


def test_every_set_has_the_cells_of_its_table():
    recipes = [i.recipe.name for i in items_of("digits", [], 1, [])]
    assert recipes == [f"digits/{m}" for m in ("erm", "par", "ada", "meada", "meada-bnn")]
    assert len(names("digits", ["meada", "noise"], 3, [])) == 6
    for data in ("cifar10c", "cifar100c"):
        cells = [i.recipe.name for i in items_of(data, [], 1, [])]
        assert len(set(cells)) == 4 * 8 and f"{data}/densenet-cutmix" in cells
    two = items_of("figure2", [], 1, [])
    assert {i.recipe.name.rpartition("/")[2] for i in two} == {"wideresnet-erm", "wideresnet-meada"}
    assert {i.name for i in two} <= names("cifar10c", [], 1, [])
    few = [i.recipe for i in items_of("cifar10c-small", [], 1, [])]
    assert {r.network["name"] for r in few} == {"wideresnet16_1"}
    views = {"randconv", "prime", "tilted", "trivialaugment"}
    assert {r.method["name"] for r in few} == set(TABLE3) | {"augmix"} | views
    assert len(few) == 15 and len(items_of("cifar10c-small", ["erm", "ada"], 2, [])) == 4
    pacs = [i.recipe.name for i in items_of("pacs", ["agg", "meada"], 1, [])]
    targets = ("art_painting", "cartoon", "photo", "sketch")
    assert pacs == [f"pacs/{m}-{t}" for m in ("agg", "meada") for t in targets]
    everyone = {i.recipe.name for i in items_of("pacs", [], 1, [])}
    assert set(pacs) < everyone and not any(name.endswith("-small") for name in everyone)
    small = [i.recipe.name for i in items_of("pacs-small", ["agg"], 1, [])]
    assert small == [f"pacs/agg-{t}-small" for t in targets]


def test_a_scale_shrinks_every_recipe_and_keeps_the_ks_of_figure_1():
    figure = [i.recipe for i in items_of("figure1", ["ada"], 1, ["scale=0.1"])]
    assert [r.plan.rounds for r in figure[1:]] == [1, 2, 3]
    assert {(r.data["train"], r.plan.total_steps, r.scaled) for r in figure} == {(1000, 1000, 0.1)}


def test_the_study_changes_one_setting_at_a_time():
    erm, centre, *others = (i.recipe for i in items_of("sensitivity", [], 1, []))
    assert (erm.method["name"], centre.method["name"]) == ("erm", "meada")
    assert len(others) == sum(len(values) - 1 for values in STUDY.values())
    for recipe in others:
        (changed,) = {k for k in STUDY if recipe.method[k] != centre.method[k]}
        assert recipe.method[changed] in STUDY[changed][1:]
        assert recipe.plan == centre.plan == erm.plan and recipe.data == centre.data == erm.data
    assert {k: centre.method[k] for k in STUDY} == {k: values[0] for k, values in STUDY.items()}
    assert centre.name == "sensitivity/meada"


def test_bad_sets_are_named():
    with pytest.raises(MeadaError, match="unknown set of runs 'digit': did you mean 'digits'"):
        items_of("digit", [], 1, [])
    with pytest.raises(MeadaError, match="--seeds must be 1 or more, got 0"):
        items_of("digits", [], 0, [])
    with pytest.raises(MeadaError, match="unknown recipe 'digits/nope'"):
        items_of("digits", ["nope"], 1, [])


def test_what_is_done_is_not_run_again_and_a_failure_stops_nobody(tmp_path, tiny):
    good, bad = [tiny(0), tiny(1)], tiny(2)
    out, said = tmp_path / "out", []
    command = stub({bad.name: "the loss is not finite"})
    outcome = reproduce([good[0], bad, good[1]], out, jobs=2, say=said.append, command=command)
    assert outcome.failed == {bad.name: "the loss is not finite"} and not outcome.elsewhere
    assert all(item.done(out) for item in good) and not bad.done(out)
    said.clear()
    again = reproduce(good, out, jobs=1, say=said.append, command=stub(dict.fromkeys(out.iterdir())))
    assert not again.failed and said == ["2 runs, 2 done before, 0 to go"]


def test_a_real_run_begins_and_a_cut_off_one_goes_on(tmp_path, tiny):
    fresh, begun = tiny(0), tiny(1)
    out, said = tmp_path / "out", []
    from meada.runs.run_folder import RunFolder

    RunFolder(out / begun.name).begin(begun.recipe)  # cut off before its first checkpoint
    outcome = reproduce([fresh, begun], out, jobs=2, say=said.append)
    assert not outcome.failed and fresh.done(out) and begun.done(out)
    assert json.loads(begun.folder(out).record.read_text())["seed"] == 1


def test_a_run_is_found_by_its_recipe_whatever_its_folder_is_called(tmp_path, tiny):
    """As when a setting has come into being since: an old recipe.toml lacks it, and its default."""
    item, out = tiny(3), tmp_path / "out"
    old = out / "tiny-seed3-before"
    old.mkdir(parents=True)
    toml = to_toml(item.recipe)
    assert 'precision = "fp32"\n' in toml
    (old / "recipe.toml").write_text(toml.replace('precision = "fp32"\n', ""))
    assert item.folder(out).path == old and not item.done(out)
    (old / "record.json").write_text("{}")
    assert item.done(out) and not tiny(4).done(out)


def test_what_another_process_has_in_hand_is_left_to_it(tmp_path, tiny):
    mine, theirs, slower = tiny(0), tiny(1), tiny(2)
    out, said = tmp_path / "out", []
    command = stub({slower.name: f"{out}: another process is training there"})
    with theirs.folder(out).lock():
        outcome = reproduce([theirs, mine, slower], out, jobs=1, say=said.append, command=command)
    assert outcome.elsewhere == [theirs.name, slower.name] and not outcome.failed
    assert mine.done(out) and f"{theirs.name}: running elsewhere" in said


def test_a_run_whose_process_dies_meanwhile_is_looked_at_again(tmp_path, tiny):
    mine, theirs = tiny(0), tiny(1)
    out, held = tmp_path / "out", ExitStack()
    held.enter_context(theirs.folder(out).lock())
    let_go = lambda text: held.close() if "running elsewhere" in text else None
    outcome = reproduce([theirs, mine], out, jobs=1, say=let_go, command=stub({}))
    assert not outcome.elsewhere and not outcome.failed and theirs.done(out) and mine.done(out)


def test_a_run_whose_parent_has_ended_before_it_begins_ends_too():
    other = os.getppid()  # not this process, which starts it
    run = subprocess.run([sys.executable, "-c", "pass"], preexec_fn=partial(die_with_parent, other), check=False)
    assert run.returncode == -signal.SIGKILL


def test_drafts_in_finished_runs_are_removed(tmp_path, tiny):
    """Left by a run that was killed in its very last write."""
    item, out = tiny(0), tmp_path / "out"
    reproduce([item], out, jobs=1, say=lambda text: None, command=stub({}))
    draft = item.folder(out).path / ".checksums.json.abcd1234"
    draft.touch()
    reproduce([item], out, jobs=1, say=lambda text: None, command=stub({}))
    assert item.done(out) and not draft.exists()


LOCKING = """
import fcntl, json, sys
from pathlib import Path
out, toml, resume = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "resume"
out.mkdir(parents=True, exist_ok=True)
with open(out / ".lock", "w") as lock:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(f"{out}: another process is training there")
    if (out / "recipe.toml").exists() and not resume:
        sys.exit(f"{out} already holds a run: --resume continues it")
    (out / "draft").write_text(toml)
    (out / "draft").replace(out / "recipe.toml")  # whole or not at all, as the program writes it
    if not (out / "record.json").exists():
        (out / "log").open("a").write("trained ")
    (out / "draft").write_text(json.dumps({"seconds": {"minimise": 60.0}}))
    (out / "draft").replace(out / "record.json")
"""


def test_two_sets_in_one_folder_at_once_train_every_run_once(tmp_path, tiny):
    """Whoever is overtaken between a look and a start looks again; nothing fails, nothing is left out."""
    items, ends = [tiny(seed) for seed in range(6)], {}

    def command(item, out):
        folder = item.folder(out)
        how = "resume" if folder.recipe.exists() else "begin"
        return [sys.executable, "-c", LOCKING, str(folder.path), to_toml(item.recipe), how]

    def go(name):
        ends[name] = reproduce(items, tmp_path / "runs", jobs=2, say=lambda line: None, command=command)

    threads = [Thread(target=go, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not ends["a"].failed and not ends["b"].failed
    logs = [(item.folder(tmp_path / "runs").path / "log").read_text() for item in items]
    assert logs == ["trained "] * 6


def test_a_run_that_another_process_was_quicker_to_begin_is_looked_at_again(tmp_path, tiny):
    item, said = tiny(0), []

    def command(item, out):
        folder = item.folder(out)
        begun = folder.recipe.exists()
        if not begun:  # the other one comes between the look and the start, and is killed
            folder.path.mkdir(parents=True)
            folder.recipe.write_text(to_toml(item.recipe))
        return [sys.executable, "-c", LOCKING, str(folder.path), to_toml(item.recipe), "resume" if begun else "begin"]

    outcome = reproduce([item], tmp_path, jobs=1, say=said.append, command=command)
    assert not outcome.failed and item.done(tmp_path), said


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel must tell a child of its parent")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_who_is_killed_takes_its_runs_along(tmp_path, tiny, how):
    """An orphan would go on unseen, with its folder locked and the cores taken."""
    asked = tmp_path / "recipe.toml"
    asked.write_text(to_toml(tiny(0).recipe))
    process = subprocess.Popen([sys.executable, "-c", SET_OF_ONE, str(asked), str(tmp_path), network_of(asked)])
    pid = tmp_path / "pid"
    wait_for(lambda: pid.exists() and pid.read_text(), process)
    process.send_signal(how)
    process.wait()
    wait_for(lambda: not running(int(pid.read_text())))


@pytest.mark.parametrize("asked, threads", [(None, 2), ("1", 1), ("6", 2), ("4,2", 2), ("0", 1)])
def test_each_of_several_gets_its_share_of_the_cores(tmp_path, tiny, monkeypatch, asked, threads):
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if asked:
        monkeypatch.setenv("OMP_NUM_THREADS", asked)
    out, item = tmp_path / "out", tiny(0)
    reproduce([item], out, jobs=3, say=lambda line: None, command=stub())
    assert json.loads(item.folder(out).record.read_text())["threads"] == threads


def test_hours_come_from_records_of_the_same_kind(tmp_path, tiny):
    out = tmp_path / "out"
    reproduce([tiny(0)], out, jobs=1, say=lambda line: None, command=stub())
    longer, other = tiny(7, "plan.total_steps=24"), tiny(7, "descent.lr=0.5")
    known = expected_seconds([tiny(7), longer, other], [tmp_path / "nowhere", out])
    assert known == {tiny(7).name: 60.0, other.name: 60.0}  # a learning rate costs nothing
    known = {tiny(0).name: 7200.0, tiny(1).name: 3600.0}
    waiting, running = [tiny(1)], {tiny(0).name: 3600.0}
    assert time_left(waiting, running, known, jobs=1) == "about 2.0 h left"
    assert time_left(waiting, running, known, jobs=2) == "about 1.0 h left"
    text = time_left([tiny(1), tiny(2)], {}, known, jobs=1)
    assert text == "about 1.0 h left, and 1 runs of unknown length"
    assert time_left([], {tiny(0).name: 9999.0}, known, jobs=1) == "about 0.0 h left"


def test_a_trial_tells_hours_where_no_record_does(monkeypatch):
    """Known costs in place of measured ones: of a large batch a part is tried, counts are exact."""
    seen = []

    def measured(recipe, pool, net):
        seen.append((recipe.plan.batch_size, tuple(pool.blocks[0].images.shape[1:]), pool.domains))
        return Costs(step=0.1, climb=0.0, look=0.0)

    monkeypatch.setattr("meada.reproduce.cost.measure", measured)
    pair = [Item(load_recipe("digits/erm", seed=seed)) for seed in (0, 1)]
    told = []
    assert set(estimated_seconds(pair, lambda *at: told.append(at)).values()) == {1000.0}
    assert [size for size, *_ in seen] == [32] and [at[1:] for at in told] == [(0, 1)]  # one trial for two seeds
    wide, pacs = (Item(load_recipe(n)) for n in ("cifar10c/wideresnet-erm", "pacs/agg-sketch-small"))
    assert estimated_seconds([wide])[wide.name] == pytest.approx(100 * 375 * 0.1 * 16)
    assert estimated_seconds([pacs])[pacs.name] == pytest.approx(20.0)
    assert seen[1][0] == 8 and seen[2][1] == (3, 224, 224) and seen[2][2].max() == 2


def test_a_look_ahead_has_hours_for_every_run(tmp_path):
    words = ["reproduce", "digits", "--methods", "erm,meada", "--seeds", "1", "--dry-run"]
    done = CliRunner().invoke(app, [*words, "--out", str(tmp_path)])
    assert done.exit_code == 0 and done.output.count("  to run  about ") == 2
    assert "unknown" not in done.output and not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [*RECIPES, *RUNS])
def test_every_set_can_be_looked_at_before_it_runs(name, tmp_path, monkeypatch):
    monkeypatch.setattr("meada.reproduce.cost.probe", lambda recipe, sizes: Costs(1.0, 0.1, 0.01))
    done = CliRunner().invoke(app, ["reproduce", name, "--seeds", "1", "--dry-run", "--out", str(tmp_path)])
    assert done.exit_code == 0 and "unknown" not in done.output
    assert done.output.count(" MB while it runs") == len(items_of(name, [], 1, [])) > 1


def sizes_held(task):
    from meada.datasets import Sizes

    targets = {name: len(part) for name, part in task.targets.items()}
    return Sizes(len(task.classes), len(task.train), targets, len(task.sources), task.train.images.shape[-1])


def test_data_sets_say_their_sizes_before_they_are_read():
    """What ``--dry-run`` counts is what the task holds."""
    from meada.datasets import DATASETS, sizes_of

    for table in ({"train": 60, "validation": 20, "test": 30}, {"train": 50, "targets": ["noisy"]}):
        assert sizes_of({"name": "embedded", **table}) == sizes_held(DATASETS["embedded"](**table))
    large = {"train": 100, "validation": 100, "test": 2_000}
    assert sizes_of({"name": "embedded", **large}).targets["sklearn_digits"] == 1_797
    cifar = sizes_of({"name": "cifar100", "train": 1000, "test": 100})
    assert (cifar.classes, cifar.train, sum(cifar.targets.values())) == (100, 1000, 15 * 5 * 100)
    assert sizes_of({"name": "digits", "targets": ["svhn", "usps"]}).targets == {"svhn": 26_032, "usps": 2_007}
    pacs = sizes_of({"name": "pacs", "sources": ["photo"]})
    assert (pacs.classes, pacs.sources, len(pacs.targets)) == (7, 1, 3)


def test_a_tree_of_pictures_is_counted(tmp_path):
    from PIL import Image

    from meada.datasets import DATASETS, sizes_of

    for domain, name, k in product(("art", "photo", "sketch"), ("cat", "dog"), range(10)):
        (folder := tmp_path / "tree" / domain / name).mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (k, k, len(domain))).save(folder / f"{k}.png")
    table = {"folder": str(tmp_path / "tree"), "targets": ["sketch"], "side": 8}
    read = sizes_held(DATASETS["domains"](**table, cache=str(tmp_path / "cache")))
    assert sizes_of({"name": "domains", **table}) == read
    assert (read.classes, read.train, read.targets, read.sources) == (2, 36, {"sketch": 20}, 2)


def test_a_data_set_of_unknown_size_has_no_hours_and_no_bytes(tmp_path):
    from meada.cli.reproduce import _list

    recipe = load_recipe("digits/erm")
    elsewhere = recipe.model_copy(update={"data": {"name": "domains", "folder": str(tmp_path / "absent")}})
    assert megabytes(elsewhere) is None and estimated_seconds([Item(elsewhere)]) == {}
    out = StringIO()
    with redirect_stdout(out):
        _list([Item(elsewhere)], tmp_path, [], 1)
    assert "hours unknown  bytes unknown" in out.getvalue() and "runs whose size is unknown" in out.getvalue()


def test_bytes_follow_the_size_of_the_images():
    def without_weights(name, *changes):
        from meada.datasets import sizes_of
        from meada.reproduce.cost import weights

        recipe = load_recipe(name, [*changes])
        copies = 8 + (2 if recipe.descent.name == "adam" else 1)  # both SGDs here have momentum
        return megabytes(recipe) - weights(recipe, sizes_of(recipe.data).classes) * copies / 1e6

    assert without_weights("digits/meada") == pytest.approx(70_000 * 3 * 32**2 * 4 / 1e6)
    assert without_weights("digits/erm") == pytest.approx(0)
    cifar = 3 * 48_000 * 3 * 32**2 / 1e6  # 8 bits, K = 2
    assert without_weights("cifar10c/wideresnet-meada") == pytest.approx(cifar)
    assert without_weights("pacs/meada-sketch-small") == pytest.approx(600 * 3 * 224**2 / 1e6)
    sources = sum(round(0.9 * n) for n in (2048, 2344, 1670))
    assert without_weights("pacs/meada-sketch") == pytest.approx(sources * 3 * 224**2 / 1e6)
    assert megabytes(load_recipe("pacs/l-cnn-sketch")) == megabytes(load_recipe("pacs/agg-sketch"))
    assert megabytes(load_recipe("digits/erm")) == pytest.approx(4_547_466 * 4 * 10 / 1e6, rel=0.01)


@pytest.mark.parametrize("text", ["", "three", "erm", "erm=", "erm=3,5", "3,5", "erm=-1", "²", "erm=²"])
def test_seeds_must_be_numbers(text):
    with pytest.raises(MeadaError, match="--seeds must be a number or METHOD=NUMBER"):
        seeds_by_method(text)


def test_a_change_of_the_seed_is_refused():
    with pytest.raises(MeadaError, match="--set must not name seed: use --seeds"):
        items_of("digits", ["erm"], 1, ["seed=5"])


def test_seeds_by_method_leave_no_place_for_methods():
    with pytest.raises(MeadaError, match="--methods must be left out"):
        seeds_by_method("erm=3", ["erm"])


@pytest.mark.parametrize(("what", "seeds", "runs"), [("digits", "erm=2,erm=3", 3), ("figure1", "meada=1,ada=1", 7)])
def test_a_run_that_is_named_twice_is_run_once(what, seeds, runs, tmp_path):
    there = Path(__file__).parents[2] / "results" / "digits"  # its records tell the hours
    said = CliRunner().invoke(app, ["reproduce", what, "--seeds", seeds, "--out", str(there), "--dry-run"])
    assert said.exit_code == 0 and f"{runs} runs," in said.output


def test_a_dry_run_with_seeds_by_method_counts_each(tmp_path):
    listed = CliRunner().invoke(
        app, ["reproduce", "digits", "--seeds", "erm=2,ada=1", "--dry-run", "--out", str(tmp_path)]
    )
    assert listed.exit_code == 0, listed.output
    assert listed.output.count("digits-erm-seed") == 2 and listed.output.count("digits-ada-seed") == 1
