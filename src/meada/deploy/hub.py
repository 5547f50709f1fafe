"""Share models through the Hugging Face Hub: ``hf://USER/NAME`` to load one, :func:`push` to upload one."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from meada.deploy.model import Model, open_model, save_model
from meada.errors import MeadaError, one_line
from meada.files import read_text
from meada.machine.extras import need

FILE = "model.safetensors"  # the only file that is downloaded
CARD = "MODEL_CARD.md"
PATHS = ("path", "root", "tests", "weights")  # settings that name files and folders of this machine
NAME = re.compile(r"(?P<repo>\w[\w.-]*/\w[\w.-]*)(@(?P<revision>[\w./-]+))?", re.ASCII)
FRONT = """\
---
library_name: meada
pipeline_tag: image-classification
tags: [meada, robustness, domain-generalization]
---
"""


def download(name: str) -> Path:
    """The model file of ``USER/NAME`` or ``USER/NAME@REVISION``, in the Hub's local cache."""
    repo, revision = parsed(name)
    hub = need("huggingface_hub", extra="hub")
    with _one_sentence(f"hf://{repo} cannot be downloaded"):
        return Path(hub.hf_hub_download(repo, FILE, revision=revision))


def push(folder: Path, name: str, *, private: bool = False, trust: Iterable[str] = ()) -> str:
    """Upload the model of a folder and its card as the repository's README; return the URL of the commit.

    The model is loaded first, so that a damaged one or one with non-finite weights is not uploaded.
    """
    repo, revision = parsed(name)
    hub = need("huggingface_hub", extra="hub")
    model = open_model(folder, trust)
    with TemporaryDirectory() as scratch, _one_sentence(f"{folder} cannot be uploaded to {repo}"):
        files = {FILE: _standalone(model, Path(scratch)), "README.md": _card(model, repo).encode()}
        api = hub.HfApi(library_name="meada")
        api.create_repo(repo, private=private or None, exist_ok=True)
        adds = [hub.CommitOperationAdd(path_in_repo=k, path_or_fileobj=v) for k, v in files.items()]
        return str(api.create_commit(repo, adds, commit_message="Upload with meada", revision=revision).commit_url)


def parsed(name: str) -> tuple[str, str | None]:
    """Repository and revision.

    >>> parsed("user/cells@v1")
    ('user/cells', 'v1')
    >>> parsed("cells")
    Traceback (most recent call last):
    meada.errors.MeadaError: a model on the Hub must be named USER/NAME or USER/NAME@REVISION, got 'cells'
    """
    found = NAME.fullmatch(name)
    if not found or ".." in name or "--" in found["repo"]:
        raise MeadaError(f"a model on the Hub must be named USER/NAME or USER/NAME@REVISION, got {name!r:.80}")
    return found["repo"], found["revision"]


def _standalone(model: Model, scratch: Path) -> Path:
    """A model file that does not need its run's folder and names no folders of this machine but the last part."""
    short = lambda table: {key: _last_part(value) if key in PATHS else value for key, value in table.items()}
    recipe = model.recipe.model_copy(update={name: short(getattr(model.recipe, name)) for name in ("data", "network")})
    save_model(scratch / FILE, model.net, recipe, model.classes, model.about)
    return scratch / FILE


def _last_part(path: Any) -> Any:
    return [_last_part(one) for one in path] if isinstance(path, list | tuple) else Path(str(path)).name


def _card(model: Model, repo: str) -> str:
    """The folder's card (a short one for a run of ``meada train``) and how to load the model."""
    file, recipe = model.path.parent / CARD, model.recipe
    short = f"""# {repo}

A {recipe.network["name"]} trained with the method {recipe.method["name"]} on the data set {recipe.data["name"]} (recipe
`{recipe.name}`, seed {recipe.seed}). Classes: {", ".join(model.classes)}.
"""
    card = read_text(file) if file.is_file() and not file.is_symlink() else short  # a link may point to any file
    return f"""{FRONT}{card}
## Load it

    import meada
    model = meada.load("hf://{repo}")  # pip install 'meada[hub]'
    model.predict("picture.jpg")
"""


@contextmanager
def _one_sentence(what: str) -> Iterator[None]:
    """Turn the library's errors of many kinds (HTTP, connection, offline) into one sentence."""
    try:
        yield
    except MeadaError:
        raise
    except Exception as error:
        raise MeadaError(f"{what}: {one_line(error, 300)}") from None
