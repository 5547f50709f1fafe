"""The command line as a new user meets it: real processes, exit codes, one sentence."""

import json
import re
import subprocess
import sys

import pytest


def meada(*words, **options):
    return subprocess.run(
        [sys.executable, "-m", "meada", *words],
        capture_output=True,
        text=True,
        **options,
    )


@pytest.mark.parametrize("verb", ["", "train", "evaluate", "list", "quickstart", "data"])
def test_help_is_there_without_torch(verb):
    code = (
        "import sys; sys.argv = ['meada', *sys.argv[1:]]\n"
        "from meada.cli.main import main\n"
        "try: main()\n"
        "except SystemExit as e: assert not e.code, e.code\n"
        "assert 'torch' not in sys.modules, 'help must not wait for torch'"
    )
    words = [w for w in (verb, "--help") if w]
    got = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    assert got.returncode == 0, got.stderr
    assert "Usage" in got.stdout
    assert not verb or verb == "data" or "Example" in got.stdout


def test_list_as_json_is_the_contract():
    known = json.loads(meada("list", "--json").stdout)
    assert known.keys() == {"methods", "networks", "datasets", "recipes"}
    assert {"erm", "ada", "meada"} <= set(known["methods"])
    assert "lenet" in known["networks"] and "digits" in known["datasets"]
    assert {"digits/erm", "digits/ada", "digits/meada"} <= set(known["recipes"])


def test_list_for_people_has_every_recipe_in_a_few_lines():
    lines = meada("list").stdout.splitlines()
    assert len(lines) < 30 and max(map(len, lines)) <= 100
    words = re.findall(r"\S*\{\S*\}\S*", " ".join(lines).replace(",     ", ","))
    shell = subprocess.run(["bash", "-c", f"echo {' '.join(words)}"], capture_output=True, text=True)
    assert set(shell.stdout.split()) == set(json.loads(meada("list", "--json").stdout)["recipes"])


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["train", "digits/meda", "--out", "x"], "unknown recipe 'digits/meda': did you mean"),
        (
            ["train", "digits/erm", "--out", "x", "--set", "plan.total_steps=-1"],
            "'plan.total_steps'",
        ),
        (["train", "digits/erm", "--out", "x", "--set", "plan.rounds=1000"], "do not fit"),
        (
            ["train", "digits/erm", "--out", "x", "--set", "method.name=nope"],
            "unknown method 'nope'",
        ),
        (["train", "digits/erm", "--out", "x", "--set", "data.root=nowhere"], "nowhere"),
        (["evaluate", "nowhere"], "nowhere must be a folder with a run to evaluate"),
        (["evaluate", "nowhere", "--rule", "best"], "unknown rule 'best'"),
        (["nonsense"], "nonsense"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(words, sentence, tmp_path):
    got = meada(*words, cwd=tmp_path)
    assert got.returncode == 2
    assert sentence in got.stderr and "Traceback" not in got.stderr
    if words[0] != "nonsense":
        assert len(got.stderr.strip().splitlines()) == 1


def test_a_run_and_its_evaluation_agree(tmp_path):
    from tests_tiny import network_of, write_recipe

    out = tmp_path / "run"
    recipe = write_recipe(tmp_path)
    trust = ("--network", network_of(recipe))
    got = meada("train", str(recipe), "--out", str(out), "--network", network_of(recipe))
    assert got.returncode == 0 and "accuracy (%)" in got.stdout
    assert "round 1 of 2, maximise" in got.stderr and "minimise to the end" in got.stderr
    record = json.loads((out / "record.json").read_text())
    for rule in ("last", "oracle"):
        scores = json.loads(meada("evaluate", str(out), *trust, "--rule", rule, "--json").stdout)
        assert scores == record["results"][rule]
    one = json.loads(meada("evaluate", str(out), *trust, "--on", "noisy", "--json").stdout)
    assert one.keys() == {"noisy"}
    wrong = meada("evaluate", str(out), *trust, "--on", "nosy")
    assert wrong.returncode == 2 and "did you mean 'noisy'" in wrong.stderr
    assert "cost of a step per image: 1 forward and 1 backward passes" in got.stdout
    quiet = meada("train", str(recipe), "--out", str(tmp_path / "q"), "--quiet", "--trust", network_of(recipe))
    assert quiet.returncode == 0 and quiet.stdout == quiet.stderr == ""
