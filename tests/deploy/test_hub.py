"""Sharing on the Hugging Face Hub: the real client against a small server with the Hub's HTTP interface."""

import base64
import json
import os
import re
import subprocess
import sys
import threading
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from tests_waiting import SECONDS

import meada
from meada.deploy import hub
from meada.deploy.hub import _standalone
from meada.deploy.model import save_model
from meada.errors import MeadaError
from meada.runs.checkpoint import metadata, with_checksum
from meada.runs.network import build_network
from meada.runs.recipe import resolve

pytest.importorskip("huggingface_hub", reason="the extra 'hub' is not installed")
pytestmark = pytest.mark.usefixtures("single")
COMMIT = "1" * 40
LOAD = """
import sys
import meada
for name in sys.argv[1:]:
    try:
        print(sorted(meada.load(name).classes))
    except meada.MeadaError as error:
        print(error)
"""
PUSH_AND_LOAD = """
import sys
from pathlib import Path
import meada
from meada.deploy.hub import push
push(Path(sys.argv[1]), "ada/run")
print(meada.load("hf://ada/run").classes)
"""


class Hub(ThreadingHTTPServer):
    """Repositories as dicts of files. All are uploaded inside the commit; the real Hub takes large ones separately."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.repos: dict[str, dict[str, bytes]] = {}
        self.asked: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.server.asked.append(f"POST {self.path}")
        repo = "/".join(self.path.split("/")[3:5])
        if self.path == "/api/repos/create":
            asked = json.loads(body)
            self.server.repos.setdefault(f"{asked['organization']}/{asked['name']}", {})
            self.answer({"url": f"{self.server.url}/{asked['organization']}/{asked['name']}"})
        elif self.path == "/api/validate-yaml":
            self.answer({"errors": [], "warnings": []})
        elif "/preupload/" in self.path:
            files = [file["path"] for file in json.loads(body)["files"]]
            self.answer({"files": [{"path": p, "uploadMode": "regular", "shouldIgnore": False} for p in files]})
        elif "/commit/" in self.path:
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    self.server.repos[repo][line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            self.answer({"commitUrl": f"{self.server.url}/{repo}/commit/{COMMIT}", "commitOid": COMMIT})
        else:
            self.send_error(404)

    def do_HEAD(self) -> None:
        self.resolve()

    def do_GET(self) -> None:
        self.resolve()

    def resolve(self) -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        found = re.fullmatch(r"/([^/]+/[^/]+)/resolve/[^/]+/(.+)", self.path)
        content = self.server.repos.get(found[1], {}).get(found[2]) if found else None
        if content is None:
            return self.send_error(404)
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", f'"{sha256(content).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def answer(self, value: object) -> None:
        content = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server():
    with Hub() as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def python(server: Hub, folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """The client reads its address when it is imported, hence another process."""
    env = {**os.environ, "HF_ENDPOINT": server.url, "HF_HOME": str(folder / "cache"), "HF_TOKEN": "hf_test"}
    done = subprocess.run([sys.executable, *map(str, words)], env=env, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode in (0, 2), done.stderr
    return done


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What ``meada robustify`` leaves, and more that must stay at home."""
    out = tmp_path / "hardened"
    out.mkdir()
    table = {"name": "x", "network": {"name": "lenet"}, "method": {"name": "erm"}, "data": {"name": "embedded"}}
    recipe = resolve(table)
    torch.manual_seed(0)
    save_model(out / "model.safetensors", build_network(recipe, 2), recipe, ("cat", "dog"))
    (out / "plan.json").write_text("{}")
    (out / "MODEL_CARD.md").write_text("# lenet: plain\n\nTold honestly.\n")
    (out / "evil.py").write_text("raise SystemExit")
    Image.fromarray(np.full((32, 32, 3), 90, np.uint8)).save(tmp_path / "picture.png")
    return out


def test_a_pushed_model_is_loaded_by_its_name(server, folder, tmp_path):
    pushed = python(server, tmp_path, "-m", "meada", "push", folder, "ada/cells", "--private")
    assert pushed.stdout.strip() == f"{server.url}/ada/cells/commit/{COMMIT}", pushed.stderr
    (files,) = server.repos.values()
    assert files.keys() == {"model.safetensors", "README.md"}
    assert files["model.safetensors"] == (folder / "model.safetensors").read_bytes()
    card = files["README.md"].decode()
    assert card.startswith("---\nlibrary_name: meada\n") and "Told honestly." in card
    assert 'meada.load("hf://ada/cells")' in card

    files["evil.py"] = b"raise SystemExit"
    server.asked.clear()
    said = python(server, tmp_path, "-m", "meada", "predict", "hf://ada/cells", tmp_path / "picture.png", "--json")
    (wanted,) = meada.load(folder).predict(tmp_path / "picture.png")
    (got,) = json.loads(said.stdout)
    assert (got["label"], got["entropy"]) == (wanted.label, pytest.approx(wanted.entropy, abs=1e-6))
    fetched = {line.split("/resolve/main/")[1] for line in server.asked if "/resolve/" in line}
    assert fetched == {"model.safetensors"}


def test_a_pushed_model_names_no_folder_of_this_machine(folder, tmp_path):
    data = {"name": "folder", "path": str(tmp_path / "photos"), "tests": [str(tmp_path / "far")]}
    network = {"name": "lenet", "weights": str(tmp_path / "mine.pth")}
    recipe = resolve({"name": "x", "network": network, "method": {"name": "erm"}, "data": data})
    save_model(folder / "model.safetensors", build_network(recipe, 2, file=False), recipe, ("cat", "dog"))
    (tmp_path / "out").mkdir()
    pushed = _standalone(meada.load(folder), tmp_path / "out").read_bytes()
    assert str(tmp_path).encode() in (folder / "model.safetensors").read_bytes()
    assert str(tmp_path).encode() not in pushed and b"photos" in pushed and b"mine.pth" in pushed


def test_what_is_downloaded_is_checked_like_a_local_file(server, folder, tmp_path):
    file = folder / "model.safetensors"
    good, weights, about = file.read_bytes(), load_file(file), metadata(file)
    damaged = bytearray(good)
    damaged[-5] ^= 1
    code = about["recipe_toml"].replace('name = "lenet"', 'name = "os:system"')

    def altered(first: float, **more: str) -> bytes:
        bad = {name: value.clone() for name, value in weights.items()}
        next(iter(bad.values())).view(-1)[0] = first
        save_file(bad, tmp_path / "bad", {**about, **more})
        return with_checksum((tmp_path / "bad").read_bytes())

    contents = {
        "good": good,
        "damaged": bytes(damaged),
        "nan": altered(float("nan")),
        "code": altered(0.0, recipe_toml=code),
    }
    server.repos = {f"a/{name}": {"model.safetensors": content} for name, content in contents.items()}
    server.repos["a/pickle"] = {"pytorch_model.bin": b"cos\nsystem\n"}
    names = ["good", "damaged", "nan", "code", "pickle", "gone"]
    said = python(server, tmp_path, "-c", LOAD, *(f"hf://a/{name}" for name in names)).stdout.splitlines()
    wanted = ["['cat', 'dog']", "is damaged", "weights must be finite", "needs code from os:system",
              "hf://a/pickle cannot be downloaded", "hf://a/gone cannot be downloaded"]  # fmt: skip
    assert len(said) == len(wanted) and all(part in line for part, line in zip(wanted, said, strict=True)), said
    assert not any("pytorch_model" in line for line in server.asked)


def test_a_run_without_its_own_metadata_becomes_a_file_that_stands_alone(server, folder, tmp_path):
    about = metadata(folder / "model.safetensors")
    (folder / "plan.json").unlink()
    (folder / "MODEL_CARD.md").unlink()
    (folder / "recipe.toml").write_text(about.pop("recipe_toml"))
    weights = load_file(folder / "model.safetensors")
    save_file(weights, folder / "model.safetensors", about)
    assert python(server, tmp_path, "-c", PUSH_AND_LOAD, folder).stdout == "('cat', 'dog')\n"
    assert "Classes: cat, dog." in server.repos["ada/run"]["README.md"].decode()


def test_a_revision_is_asked_for_as_it_was_named(monkeypatch):
    asked = []
    client = SimpleNamespace(hf_hub_download=lambda *words, **more: asked.append((*words, more["revision"])) or "x")
    monkeypatch.setattr(hub, "need", lambda name, extra: client)
    hub.download("user/cells@v1")
    hub.download("user/cells")
    assert asked == [("user/cells", "model.safetensors", "v1"), ("user/cells", "model.safetensors", None)]


def test_a_card_that_is_a_link_is_not_uploaded(folder, tmp_path):
    """A stranger's folder could have one to any file of the person who shares it."""
    (tmp_path / "secret").write_text("secret")
    (folder / hub.CARD).unlink(missing_ok=True)
    (folder / hub.CARD).symlink_to(tmp_path / "secret")
    assert "secret" not in hub._card(meada.load(folder), "user/cells")


@pytest.mark.parametrize("name", ["cells", "a/b/c", "a/../b", "../b", "a b/c", "a/b@", "a/-b", "a/b?x", ""])
def test_a_bad_name_is_a_sentence(folder, name):
    for call in (lambda: meada.load(f"hf://{name}"), lambda: hub.push(folder, name)):
        with pytest.raises(MeadaError, match="must be named USER/NAME"):
            call()


def test_without_the_library_the_line_that_installs_it_is_told(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    for call in (lambda: meada.load("hf://a/b"), lambda: hub.push(folder, "a/b")):
        with pytest.raises(MeadaError, match=r"pip install 'meada\[hub\]'"):
            call()
