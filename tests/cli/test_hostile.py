"""Names, files and arguments that mean harm: no traceback, no escape sequence, no markup; JSON stays JSON."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

import meada.cli.main as cli
from meada.deploy.model import save_model
from meada.errors import MeadaError
from meada.lookup import Trusted, lookup
from meada.machine.terminal import SafeConsole, printable
from meada.runs.network import build_network
from meada.runs.recipe import resolve

CLASSES = ("[/b]", "\x1b]0;owned\x07", "[red]")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_default_dtype(torch.float32)
    folder = tmp_path_factory.mktemp("hostile")
    recipe = resolve({
        "name": "x", "network": {"name": "lenet"}, "method": {"name": "erm"}, "data": {"name": "embedded"},
    })  # fmt: skip
    save_model(folder / "model.safetensors", build_network(recipe, 3), recipe, CLASSES)
    Image.fromarray(np.zeros((32, 32, 3), np.uint8)).save(folder / "p.png")
    return folder / "model.safetensors"


def call(*words: object) -> tuple[int, str, str]:
    """Exit code, output and errors of the whole command, in this process."""
    got = CliRunner().invoke(cli.app, [str(word) for word in words])
    if isinstance(got.exception, MeadaError):
        return 2, got.output, str(got.exception)
    assert got.exception is None or isinstance(got.exception, SystemExit), (words, got.exception)
    return got.exit_code, got.output, ""


def changed(model: Path, folder: Path, weights: dict[str, torch.Tensor] | None = None, **about: str) -> Path:
    """The model with other metadata or weights, without a checksum, as a stranger would write it."""
    from safetensors import safe_open

    with safe_open(model, "pt") as file:
        held = {k: v for k, v in (file.metadata() or {}).items() if k != "sha256"}
    save_file(weights or load_file(model), folder / "m.safetensors", {**held, **about})
    return folder / "m.safetensors"


@pytest.mark.filterwarnings("ignore:.*has no checksum")
@pytest.mark.parametrize(
    "about, sentence",
    [
        ({"side": "zzz"}, "'side' must be a number from 0 up, got 'zzz'"),
        ({"side": "100000"}, "'side' must be from 1 to 4096, got 100000"),
        ({"side": "nan"}, "'side' must be a number from 0 up"),
        ({"recipe_toml": "a = ["}, "'recipe_toml' must be TOML"),
        ({"recipe_toml": "a = " + "[" * 100_000}, "'recipe_toml' must be TOML"),
        ({"recipe_toml": "data = 3"}, "key 'data.name' is missing"),
        ({"recipe_toml": 'name = "x"\n[network]\nname = "os:system"\ncommand = "true"'}, "missing"),
        ({"classes": ""}, "must name its classes"),
        ({"classes": "a\nb"}, "does not fit the network"),
        ({"abstain_entropy": "x"}, "'abstain_entropy' must be a number"),
        ({"format": "meada-model/2"}, "must be of format 'meada-model/1', got 'meada-model/2'"),
        ({"meada": "99.0"}, ""),
    ],
)
def test_metadata_of_strangers_is_a_sentence(model, tmp_path, single, about, sentence):
    code, _, error = call("predict", changed(model, tmp_path, **about), model.parent / "p.png")
    assert code == (2 if sentence else 0) and sentence in error


@pytest.mark.filterwarnings("ignore:.*has no checksum")
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused(model, tmp_path, single, bad):
    import meada

    weights = load_file(model)
    next(iter(weights.values())).view(-1)[0] = bad
    path = changed(model, tmp_path, weights)
    words = [("predict", path, model.parent / "p.png", "--json"), ("export", path, "--onnx", tmp_path / "m.onnx")]
    for word in words:
        code, output, error = call(*word)
        assert code == 2 and "weights must be finite, got NaN or infinity" in error and not output
    with pytest.raises(MeadaError, match="weights must be finite"):
        meada.load(path)


def test_one_flipped_bit_of_a_model_is_refused(model, tmp_path, single):
    content = bytearray(model.read_bytes())
    content[-100] ^= 1
    (tmp_path / "m.safetensors").write_bytes(content)
    assert "m.safetensors is damaged: its checksum must be" in call("predict", tmp_path / "m.safetensors", "x.png")[2]


def test_names_reach_the_terminal_as_text(model, tmp_path, single):
    name = tmp_path / "[/x]\x1b[31m.png"
    name.parent.mkdir()  # the slash makes a folder called "["
    name.write_bytes((model.parent / "p.png").read_bytes())
    code, output, error = call("predict", model, name)
    assert code == 0, error
    assert "\x1b" not in output and "\x07" not in output
    assert call("predict", tmp_path / "[/x]", name)[0] == 2


def test_the_console_takes_no_markup():
    console = SafeConsole(record=True, width=80, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print("[/b] [red]x[/red] :smile: \x1b[2J")
    assert console.export_text().strip() == "[/b] [red]x[/red] :smile: \\x1b[2J"
    assert printable("a\u202eb\ud800") == "a\\u202eb\\ud800"


def test_a_pipe_is_not_waited_for(model, tmp_path, single):
    os.mkfifo(tmp_path / "pipe.png")
    assert "must be a picture file" in call("predict", model, tmp_path / "pipe.png")[2]


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["train", "digits/meada", "--out", "x", "--set", "method.beta=-1"], "'method.beta' must be 0 or more, got -1"),
        (
            ["train", "digits/meada", "--out", "x", "--set", "method.step_size=-1"],
            "'method.step_size' must be 0 or more",
        ),
        (["train", "digits/meada", "--out", "x", "--set", "method.beta=nan"], "method.beta"),
        (["train", "digits/meada", "--out", "x", "--set", "checkpoint_seconds=inf"], "checkpoint_seconds"),
        (["train", "digits/meada", "--out", "x", "--set", 'name=""'], "key 'name'"),
        (["train", "digits/meada", "--out", "x", "--set", 'name="a\\u0000b"'], "key 'name'"),
        (["train", "digits/meada", "--out", "x", "--seed", str(2**70)], "key 'seed'"),
        (["train", "digits/meada", "--out", "x", "--set", "plan.batch_size=0"], "plan.batch_size"),
        (["sweep", "digits/meada", "--out", "x", "--grid", "beta=nan", "--dry-run"], "must be finite and different"),
        (["sweep", "digits/meada", "--out", "x", "--grid", "beta=1,1", "--dry-run"], "must be finite and different"),
        (["sweep", "digits/meada", "--out", "x", "--jobs", "0", "--dry-run"], "--jobs must be 1 or more, got 0"),
        (["sweep", "digits/meada", "--out", "x", "--engine", "zz", "--dry-run"], "unknown engine 'zz'"),
        (["sweep", "digits/meada", "--out", "x", "--cores", "-1", "--dry-run"], "--cores must be 1 or more, got -1"),
        (["train", "nope.toml", "--out", "x"], "unknown recipe 'nope.toml': there is no such file"),
        (["train", "zzzzzzzz", "--out", "x"], "more"),  # not a list of two hundred recipes
        (["train", "digits/erm", "--out", "x", "--space", "mine.py:s"], "to use it, give --set method.space=mine.py:s"),
        (["reproduce", "digits", "--engine", "x", "--dry-run"], "unknown engine 'x'"),
        (["reproduce", "digits", "--cores", "0", "--dry-run"], "--cores must be 1 or more, got 0"),
        (
            ["reproduce", "digits", "--timings", "nosuch", "--dry-run"],
            "--timings must be folders of records, got nosuch",
        ),
    ],
)
def test_nonsense_is_refused_where_it_is_given(words, sentence):
    code, _, error = call(*words)
    assert code == 2 and sentence in error, error


@pytest.mark.parametrize(
    "text, sentence",
    [
        ('extends = "SELF"', "must not extend itself"),
        ("extends = 3", "'extends' must be a name or a list of names, got 3"),
        ("extends = [1]", "'extends' must be a name or a list of names"),
        ("a = " + "[" * 100_000, "is not TOML"),
        ("a = " + "9" * 5_000, "is not TOML"),
        ("\udcff", "must be text in UTF-8"),
        (
            'plan = 3\n[data]\nname = "embedded"\n[network]\nname = "lenet"\n[method]\nname = "erm"',
            "must be a table of settings, got 3",
        ),
    ],
)
def test_recipes_that_are_absurd_are_a_sentence(tmp_path, text, sentence):
    path = tmp_path / "r.toml"
    path.write_bytes(text.replace("SELF", str(path)).encode(errors="surrogateescape"))
    code, _, error = call("train", path, "--out", tmp_path / "out")
    assert code == 2 and sentence in error, error


def test_what_was_not_foreseen_is_one_sentence_and_a_file(tmp_path):
    code = (
        "import sys; sys.argv = ['meada', 'list']\n"
        "import meada.cli.main as cli\n"
        "def broken(): raise KeyError('\\x1b[31m')\n"
        "cli.app.registered_commands[1].callback = broken\n"
        "cli.main()"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    got = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert got.returncode == 70 and len(got.stderr.strip().splitlines()) == 1, got.stderr
    (file,) = tmp_path.glob("meada-error-*.txt")
    assert str(file) in got.stderr and "\x1b" not in got.stderr
    assert "Traceback" in file.read_text() and "broken" in file.read_text()


def test_memory_that_is_not_there_is_a_sentence(capsys):
    """torch has no exception of its own for it."""

    def ask() -> None:
        torch.empty(1 << 60, dtype=torch.uint8)

    def load() -> None:
        raise ImportError("libtorch_cpu.so: failed to map segment from shared object")

    for verb in (ask, load, lambda: np.empty(1 << 60, np.uint8)):
        with pytest.raises((RuntimeError, ImportError, MemoryError)) as raised:
            verb()
        with pytest.raises(SystemExit) as end:
            cli._unforeseen(raised.value)
        said = capsys.readouterr().err
        assert end.value.code == 2 and said.startswith("meada: not enough memory") and said.count("\n") == 1


def test_the_end_of_a_file_is_not_a_person_who_stops(monkeypatch):
    def ended() -> None:
        raise EOFError

    monkeypatch.setattr(cli.app.registered_commands[1], "callback", ended)
    got = CliRunner().invoke(cli.app, ["list"])
    assert isinstance(got.exception, MeadaError) and "a file ended early" in str(got.exception)


def test_json_is_json_whatever_the_numbers_are():
    from meada.files import json_text

    text = json_text({"a": float("nan"), "b": [float("inf"), (1.5, float("-inf"))]})
    assert json.loads(text, parse_constant=pytest.fail) == {"a": None, "b": [None, [1.5, None]]}


def test_a_fault_in_a_persons_own_file_is_told_with_its_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cli.tempfile, "tempdir", str(tmp_path))
    file = tmp_path / "own.py"
    file.write_text("def make():\n    return {}['missing']\n")
    make = lookup("method", Trusted(f"{file}:make"), {})
    with pytest.raises(KeyError) as raised:
        make()
    with pytest.raises(SystemExit) as end:
        cli._unforeseen(raised.value)
    said = capsys.readouterr().err
    assert end.value.code == 2 and said.startswith("meada: own.py, line 2: KeyError: 'missing'; the traceback is in ")


def test_a_folder_of_pictures_is_no_place_for_a_quickstart(tmp_path):
    (tmp_path / "photos" / "cat").mkdir(parents=True)
    (tmp_path / "file").write_text("")
    assert "--out must be a new folder" in call("quickstart", "--out", tmp_path / "photos")[2]
    for words in (["quickstart"], ["sweep", "digits/erm"], ["reproduce", "digits", "--seeds", "1"]):
        code, _, error = call(*words, "--out", tmp_path / "file")
        assert code == 2 and "--out must be a folder, got the file" in error, error
    assert [path.name for path in (tmp_path / "photos").iterdir()] == ["cat"]


def test_the_report_of_a_robustify_folder_is_named(tmp_path):
    (tmp_path / "outcome.json").write_text("{}")
    code, _, error = call("report", tmp_path, "--out", tmp_path / "r.html")
    assert code == 2 and f"{tmp_path}/report.html" in error


def test_a_network_with_lazy_layers_is_refused_before_anything_is_trained(tmp_path):
    (tmp_path / "net.py").write_text(
        "from torch import nn\ndef net(num_classes): return nn.Sequential(nn.Flatten(), nn.LazyLinear(num_classes))\n"
    )
    name = f"{tmp_path}/net.py:net"
    words = ["train", "quickstart/erm", "--out", tmp_path / "x", "--set", f"network.name={name}", "--network", name]
    code, _, error = call(*words)
    assert code == 2 and "net must have initialised weights, got lazy ones" in error, error
