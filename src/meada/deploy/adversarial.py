"""Write adversarial copies of pictures as files, for use in any other training code."""

from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from meada import __version__
from meada.algorithm import nothing
from meada.datasets import Samples
from meada.datasets.folder import read_pictures
from meada.deploy.model import Model
from meada.errors import MeadaError
from meada.files import write_bytes, write_json
from meada.machine.terminal import Tell
from meada.methods.method import Context
from meada.pool import Pool, as_stored
from meada.runs.functions import make
from meada.runs.recipe import method_of
from meada.streams import key, stream


def write_adversarial(
    model: Model, samples: Samples, out: Path, *, source: str, tell: Tell = nothing
) -> dict[str, Any]:
    """Run one maximisation round of the model's method; write CLASS/NUMBER.png per sample and ``perturb.json``.

    Returns the content of ``perturb.json``.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise MeadaError(f"--out must be a new or empty folder, got {out}")
    recipe, method = model.recipe, method_of(model.recipe)
    if method.growth(1, 1) == 1:
        name = recipe.method["name"]
        raise MeadaError(f"the method of the run must make images, as ada and meada do, got '{name}'")
    pool = Pool(samples.images, samples.labels, samples.domains, store="uint8")
    context = Context(
        seed=recipe.seed, generator=stream(recipe.seed, "perturb"), pool_size=len(pool),
        embedding=recipe.embedding or None, tell=partial(tell, "maximise"),
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(key(recipe.seed, "ascent", 0))
        method.grow(model.net, pool, context)
    changes = _write(pool, model.classes, out)
    about = {
        "meada": __version__, "model": str(model.path), "source": source, "method": recipe.method,
        "seed": recipe.seed, "images": len(changes), "classes": len(pool.labels.unique()),
        "levels": {"mean": float(changes.mean()), "largest": float(changes.max())},  # of 255
    }  # fmt: skip
    write_json(out / "perturb.json", about)
    return about


def _write(pool: Pool, classes: tuple[str, ...], out: Path) -> torch.Tensor:
    """Write the latest block as files; return the largest change of each picture, in levels of 255."""
    names = [folder_name(label) for label in classes]
    if len(set(names)) < len(names):
        names = [f"{k}_{name}" for k, name in enumerate(names)]
    born, start = pool.blocks[-1], len(pool) - len(pool.blocks[-1].labels)
    changes = []
    for row in range(len(born.labels)):
        new, old = (pool.images(torch.tensor([i])) for i in (start + row, int(born.parents[row])))
        buffer = BytesIO()
        Image.fromarray(as_stored(new, torch.uint8)[0].permute(1, 2, 0).numpy()).save(buffer, "PNG")
        folder = out / names[int(born.labels[row])]
        write_bytes(folder / f"{int(born.parents[row]):06d}.png", buffer.getvalue())
        changes.append(255 * (new - old).abs().max())
    return torch.stack(changes)


def folder_name(label: str) -> str:
    """A valid folder name for a class, since a label from a CSV file may contain any character.

    >>> folder_name("dog"), folder_name("../cat"), folder_name(".")
    ('dog', '.._cat', '_')
    """
    name = label.replace("/", "_").replace("\\", "_").replace("\0", "_")
    return "_" * len(name) if name in (".", "..") else name


def samples_of(model: Model, pictures: Path | None, limit: int | None) -> Samples:
    """The training images of the run, or a folder of pictures with the model's classes."""
    if pictures is not None:
        samples = read_pictures(pictures, model.classes, model.side)
    else:
        samples = make("data", model.recipe.data).train
    if limit is None or limit >= len(samples):
        return samples
    order = samples.labels.argsort(stable=True)  # evenly spaced in class order
    return samples[order[torch.arange(limit) * len(samples) // limit].sort().values]
