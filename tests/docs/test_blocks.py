"""Every command and code block of README, CONTRIBUTING and the site works as it is printed.

Python blocks are executed, page by page. Every ``meada`` command, in a block or in running text, is parsed by
the program itself: a verb or an option that does not exist turns a test red. Blocks after ``<!-- test: run -->``
are executed whole, in a folder with a few pictures. Blocks of ``>>>`` are doctests, run by ``tests/theory``.
Code cells of tutorials are executed by the build of the site (``make docs``), where an error ends it.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks.__main__ import app as benchmarks_app
from PIL import Image
from typer.main import get_command

from meada.cli.main import app
from meada.deploy.model import save_model
from meada.runs.network import build_network
from meada.runs.recipe import resolve
from meada.runs.recipe_families import recipe_names

ROOT = Path(__file__).parents[2]
SKIPPED = {"_build", "generated", "decisions", "jupyter_execute"}
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "benchmarks" / "README.md"]
    + [p for p in (ROOT / "docs").rglob("*.md") if not SKIPPED & set(p.parts) and p.name != "loops.md"]
)
BLOCK = re.compile(r"(?:<!-- test: (?P<mark>[^>]*?) -->\n)?^```(?P<kind>[^\n]*)\n(?P<body>.*?)^```", re.M | re.S)
INLINE = re.compile(r"(?<!`)`((?:meada|python -m benchmarks|torchrun) [^`]+)`(?!`)")
CALL = re.compile(r"(\w+=\S+ )*(meada|torchrun|python -m (meada|benchmarks)) ")
PLACEHOLDERS = {"N": "1", "K": "1", "...": ""}


def name_of(page):
    return str(page.relative_to(ROOT))


def blocks(page, *kinds):
    found = BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [(m["body"], m["mark"] or "") for m in found if m["kind"].strip() in kinds and ">>>" not in m["body"]]


def lines_of(body):
    joined = body.replace("\\\n", " ")
    return [line.removeprefix("$ ").split("  #")[0].strip() for line in joined.splitlines()]


def commands(page):
    """Calls of ``meada``, as lists of words without the program's name."""
    lines = [line for body, _ in blocks(page, "console", "sh", "bash", "") for line in lines_of(body)]
    inline = INLINE.findall(page.read_text(encoding="utf-8"))
    for line in filter(CALL.match, [*lines, *inline]):
        words = [PLACEHOLDERS.get(word, word) for word in shlex.split(line, comments=True)]
        if words[:1] == ["meada"] and len(words) > 1:
            yield [word for word in words[1:] if word]
        elif "-m" in words and words[words.index("-m") + 1 :][:1] == ["meada"]:
            yield words[words.index("-m") + 2 :]
        elif words[:3] == ["python", "-m", "benchmarks"]:
            yield ["bench", *words[3:]]


def parse(words):
    """What the program does before it does anything: find the verb, read every option."""
    command, parent = get_command(app), None
    while hasattr(command, "commands"):
        parent = command.make_context(command.name, list(words), parent=parent, resilient_parsing=not words)
        name, *words = words
        assert name in command.commands, f"there is no command '{name}'"
        command = command.commands[name] if name != "bench" else get_command(benchmarks_app)
    command.make_context(command.name, list(words), parent=parent)


CALLS = sorted({(name_of(page), shlex.join(words)) for page in PAGES for words in commands(page)})


@pytest.mark.parametrize("page, call", CALLS)
def test_the_program_understands_the_command(page, call):
    words = shlex.split(call)
    if {"--help", "--version", "-h"} & set(words):
        return
    if len(words) == 1:  # a verb on its own only names the command
        assert words[0] in get_command(app).commands
    else:
        parse(words)
    if len(words) > 1 and words[0] in ("train", "sweep") and words[1].islower() and not words[1].endswith(".toml"):
        assert words[1] in recipe_names()


def test_a_wrong_option_would_be_found():
    with pytest.raises(Exception, match="--sed"):
        parse(["train", "digits/meada", "--sed", "3", "--out", "x"])
    with pytest.raises(AssertionError, match="traim"):
        parse(["traim", "digits/meada"])


WITH_PYTHON = [page for page in PAGES if blocks(page, "python")]


@pytest.mark.usefixtures("single")
@pytest.mark.parametrize("page", WITH_PYTHON, ids=name_of)
def test_python_blocks_run_as_printed(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pictures(tmp_path)
    namespace = {"__name__": "page"}
    for body, _ in blocks(page, "python"):
        exec(compile(body, name_of(page), "exec"), namespace)


RUNNABLE = [page for page in PAGES if any(mark == "run" for _, mark in blocks(page, "console"))]


@pytest.mark.parametrize("page", RUNNABLE, ids=name_of)
def test_marked_commands_run_as_printed(page, tmp_path):
    pictures(tmp_path)
    for body, mark in blocks(page, "console"):
        for line in lines_of(body) if mark == "run" else []:
            words = shlex.split(line)
            command = [sys.executable, "-m", *words] if words[0] == "meada" else words
            done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{line}\n{done.stderr}"


def pictures(folder, each=12, side=48):
    """photos/CLASS/*.png and sketches/CLASS/*.png, bright in one of three places; a model of them in hardened/."""
    torch.manual_seed(0)
    table = {"name": "x", "network": {"name": "lenet"}, "method": {"name": "erm"}, "data": {"name": "embedded"}}
    recipe = resolve(table)
    (folder / "hardened").mkdir()
    (folder / "hardened" / "plan.json").write_text("{}")
    save_model(folder / "hardened" / "model.safetensors", build_network(recipe, 3), recipe, ("left", "middle", "right"))
    rng = np.random.default_rng(0)
    for kind in ("photos", "sketches"):
        for label, name in enumerate(("left", "middle", "right")):
            (folder / kind / name).mkdir(parents=True)
            for i in range(each):
                image = rng.integers(0, 80, (side, side, 3), dtype=np.uint8)
                image[:, 16 * label : 16 * label + 16] += np.uint8(100)
                Image.fromarray(image).save(folder / kind / name / f"{i}.png")


LINK = re.compile(r"\[[^\]\"]*\]\(([^)#:\s]+)(?:#[^)]*)?\)")
LINKED = sorted(
    {*PAGES, ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("decisions/*.md"), *(ROOT / "results").rglob("*.md")}
)


@pytest.mark.parametrize("page", LINKED, ids=name_of)
def test_relative_links_lead_somewhere(page):
    links = LINK.findall(page.read_text(encoding="utf-8"))
    dead = [link for link in links if not (page.parent / link).exists() and "generated/" not in link]
    assert not dead
