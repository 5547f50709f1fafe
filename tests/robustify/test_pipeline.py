"""Robustify as a new user meets it: a folder with traps in, a hardened model and its proof out."""

import json
import re
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from safetensors import safe_open

from meada.corruptions import CORRUPTIONS
from meada.errors import MeadaError
from meada.robustify.pipeline import carried_out, planned
from meada.robustify.prepare import Asked
from meada.robustify.robustness import verdict
from meada.runs.run import run

NETWORK = """
from torch import nn

def tiny(num_classes, width=4):
    return nn.Sequential(
        nn.Conv2d(3, width, 7, stride=4), nn.ReLU(), nn.Flatten(),
        nn.Linear(width * 49, 8), nn.ReLU(), nn.Linear(8, num_classes),
    )
"""
QUICK = (
    "plan.total_steps=12", "plan.min_steps=4", "plan.rounds=1", "method.steps=2", "descent.lr=0.01",
    "evaluation.every=6", "robustness.images=4", "robustness.severities=[3]", "network.width=3",
)  # fmt: skip
quiet = lambda label: nullcontext(lambda phase, done, total: None)


@pytest.fixture
def asked(tmp_path: Path, single: None) -> Asked:
    (tmp_path / "net.py").write_text(NETWORK)
    return Asked(
        data=str(tmp_path / "photos"),
        network=f"{tmp_path / 'net.py'}:tiny",
        side=32,
        seed=3,
        changes=QUICK,
    )


def test_a_folder_with_every_trap_becomes_a_model(trapped, elsewhere, asked, tmp_path):
    said: list[str] = []
    asked = replace(asked, tests=(str(elsewhere),))
    plan = planned(asked, tmp_path / "out", say=said.append, bar=quiet)
    warnings = "\n".join(line for line in said if line.startswith("warning"))
    assert "class 'empty' is left out" in warnings and "4 files are left out" in warnings
    for name in ("red/1.jpg", "green/text.jpg", "green/notes.txt", "red/huge.png has more than"):
        assert name in warnings
    assert not re.search("grey|cmyk|deep|turned", warnings)  # they are taken
    assert plan.settings["network.width"].value == 3 and plan.settings["data.side"].value == 32

    outcome = carried_out(plan, tmp_path / "out", bar=quiet)
    for record, method in ((outcome.before, "erm"), (outcome.after, "meada")):
        held = json.loads((tmp_path / "out" / method / "record.json").read_text())
        assert held == record and record["method"] == method and record["steps"] == 12
        assert record["results"]["last"]["elsewhere"]["n"] == 12
        beyond = record["robustness"]
        assert len(beyond["corruptions"]) == 15 and len(beyond["crafted"]) == 11
        assert beyond["corruptions"]["fog"]["n"] == 4 and beyond["severities"] == [3]
        assert "a fixed 4 of the" in beyond["note"] and "severity 3" in beyond["note"]
        assert "red/huge.png" in record["provenance"]["left out"]
        attack = json.loads((tmp_path / "out" / method / "attack.json").read_text())
        assert attack["domains"]["held-out pictures"]["n"] == 4
    assert [r["pool"] for r in outcome.after["rounds"]] == [2 * 26]  # 7 of 9, 9 of 11 and 10 of 13

    with safe_open(tmp_path / "out" / "model.safetensors", "pt") as model:
        about = model.metadata()
    assert about["classes"].split("\n") == ["blue", "green", "red"] and about["side"] == "32"
    assert about["network"] == asked.network and 'name = "meada"' in about["recipe_toml"]
    page = (tmp_path / "out" / "MODEL_CARD.md").read_text()
    for words in (
        "## Data",
        "## Settings",
        "## Limits",
        "test: elsewhere",
        "plan.total_steps | 12",
    ):
        assert words in page
    assert "Before and after" in (tmp_path / "out" / "report.html").read_text()


def test_the_same_command_carries_on_and_another_is_refused(photos, asked, tmp_path, monkeypatch):
    out = tmp_path / "out"
    plan = planned(asked, out, say=print, bar=quiet)
    run(plan.erm, out / "erm")  # then the power went
    (out / "meada").mkdir()
    before = (out / "plan.json").read_bytes()
    monkeypatch.setattr("meada.robustify.pipeline.prepare", lambda *_, **__: pytest.fail("planned anew"))
    again = planned(asked, out, say=print, bar=quiet)
    assert (again.erm, again.hardened) == (plan.erm, plan.hardened)
    stamp = (out / "erm" / "model.safetensors").stat().st_mtime_ns
    first = carried_out(again, out, bar=quiet)
    assert (out / "erm" / "model.safetensors").stat().st_mtime_ns == stamp  # not trained again
    assert carried_out(again, out, bar=quiet).after == first.after
    assert (out / "plan.json").read_bytes() == before
    with pytest.raises(MeadaError, match="was begun with seed 3, not 4"):
        planned(replace(asked, seed=4), out, say=print, bar=quiet)


def test_a_budget_is_in_the_record(photos, asked, tmp_path):
    kept = tuple(c for c in QUICK if "severities" in c or "rounds" in c or "min_steps" in c)
    asked = replace(asked, minutes=0.02, changes=("plan.min_steps=1", *kept[1:]))
    plan = planned(asked, tmp_path / "out", say=print, bar=quiet)
    assert "fitted to 0.02 minutes" in plan.hardened.note == plan.erm.note
    assert plan.hardened.plan.total_steps < 200
    assert plan.erm.plan == plan.hardened.plan  # equal gradient steps


@pytest.mark.parametrize(
    "change, sentence",
    [
        ({"method": "meda"}, "unknown method 'meda': did you mean"),
        ({"method": "erm"}, "compared with"),
        ({"side": 16}, "--side 16"),
        ({"minutes": 0.0}, "--minutes 0"),
        ({"network": "", "weights": "w.pth"}, "--weights needs the --network"),
        ({"weights": "nowhere.pth"}, "no file of weights at nowhere.pth"),
        ({"network": "resnet81"}, "unknown network 'resnet81': did you mean"),
        ({"data": "nowhere"}, "nowhere is neither a folder"),
        ({"changes": ("plan.round=1",)}, "unknown key 'plan.round'"),
        ({"changes": ("robustness.image=1",)}, "unknown key 'robustness.image'"),
        ({"changes": ("robustness.severities=[6]",)}, "'robustness.severities' is"),
        ({"tests": ("nowhere",)}, "nowhere is neither a folder"),
    ],
)
def test_bad_input_is_a_sentence_and_leaves_no_plan(photos, asked, tmp_path, change, sentence):
    with pytest.raises(MeadaError, match=re.escape(sentence)):
        planned(replace(asked, **change), tmp_path / "out", say=print, bar=quiet)
    assert not (tmp_path / "out" / "plan.json").exists()


def test_a_folder_of_somebody_elses_is_left_alone(photos, asked, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("years of work")
    with pytest.raises(MeadaError, match="--out needs a new folder"):
        planned(asked, tmp_path / "out", say=print, bar=quiet)


def test_the_command_prints_plan_and_outcome(photos, asked, tmp_path, monkeypatch, capsys):
    from meada.cli.main import main

    monkeypatch.chdir(tmp_path)
    words = [
        "robustify",
        "--data",
        "photos",
        "--network",
        "net.py:tiny",
        "--side",
        "32",
        "--out",
        "o",
    ]
    monkeypatch.setattr(sys, "argv", ["meada", *words, *(w for c in QUICK for w in ("--set", c))])
    with pytest.raises(SystemExit) as stop:
        main()
    shown = capsys.readouterr()
    assert stop.value.code == 0, shown.err
    assert "plan.total_steps" in shown.err and "by a few steps timed here" in shown.err
    assert "before and after" in shown.out and "15 corruptions, mean" in shown.out
    assert "report.html" in shown.out and "Under corruptions meada" in shown.out


@pytest.mark.parametrize(
    "ours, said",
    [(64.0, "4.0 points better than ERM: take the hardened"),
     (60.2, "differ by +0.2 points, which 400 pictures cannot"),
     (50.0, "10.0 points worse than ERM: take the plain model (erm/model.safetensors)")],
)  # fmt: skip
def test_the_verdict_is_by_corruptions_of_held_out_pictures(ours, said):
    def record(method, accuracy, elsewhere):
        one = {"accuracy": accuracy, "n": 10}
        return {
            "method": method, "source": {"last": one},
            "results": {"last": {"elsewhere": {"accuracy": elsewhere, "n": 10}}},
            "robustness": {
                "images": 400, "corruptions": dict.fromkeys(CORRUPTIONS, one), "crafted": {"a": one}
            },
        }  # fmt: skip

    assert said in verdict(record("erm", 60.0, 90.0), record("meada", ours, 10.0))
