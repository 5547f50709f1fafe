"""Write harder copies of pictures as files, for any other trainer."""

from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from meada import __version__
from meada.algorithm import nothing
from meada.datasets import Samples, Task
from meada.datasets.folder import read_pictures
from meada.deploy.model import Model
from meada.errors import MeadaError
from meada.files import write_bytes, write_json
from meada.machine.terminal import Tell
from meada.methods.method import Context
from meada.pool import Pool, as_stored
from meada.runs.recipe import make, method_of
from meada.streams import key, stream


def write_adversarial(
    model: Model, samples: Samples, out: Path, *, source: str, tell: Tell = nothing
) -> dict[str, Any]:
    """One maximisation round of the model's own method; CLASS/NUMBER.png for each sample, and ``perturb.json``.

    Gives back what that file says.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise MeadaError(f"{out} is there already: --out needs a new folder")
    recipe, method = model.recipe, method_of(model.recipe)
    if method.growth(1, 1) == 1:
        name = recipe.method["name"]
        raise MeadaError(f"method '{name}' makes no samples: a run of ada or meada does")
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
        "meada": __version__,
        "model": str(model.path),
        "source": source,
        "method": recipe.method,
        "seed": recipe.seed,
        "images": len(changes),
        "classes": len(pool.labels.unique()),
        "levels": {"mean": float(changes.mean()), "largest": float(changes.max())},  # of 255
    }
    write_json(out / "perturb.json", about)
    return about


def _write(pool: Pool, classes: tuple[str, ...], out: Path) -> torch.Tensor:
    """Write the latest block as files; gives the largest change of each picture, in levels of 255."""
    born, start = pool.blocks[-1], len(pool) - len(pool.blocks[-1].labels)
    changes = []
    for row in range(len(born.labels)):
        new, old = (pool.images(torch.tensor([i])) for i in (start + row, int(born.parents[row])))
        buffer = BytesIO()
        Image.fromarray(as_stored(new, torch.uint8)[0].permute(1, 2, 0).numpy()).save(buffer, "PNG")
        folder = out / folder_name(classes[int(born.labels[row])])
        write_bytes(folder / f"{int(born.parents[row]):06d}.png", buffer.getvalue())
        changes.append(255 * (new - old).abs().max())
    return torch.stack(changes)


def folder_name(label: str) -> str:
    """A class as a folder: a label from a CSV file may hold what a path may not.

    >>> folder_name("dog"), folder_name("../cat"), folder_name(".")
    ('dog', '.._cat', '_')
    """
    name = label.replace("/", "_").replace("\\", "_").replace("\0", "_")
    return "_" * len(name) if name in (".", "..") else name


def samples_of(model: Model, pictures: Path | None, limit: int | None) -> Samples:
    """The images that the run trained on, or a folder of pictures with the model's classes."""
    if pictures is None:
        task: Task = make("data", model.recipe.data)
        samples = task.train
    else:
        samples = read_pictures(pictures, model.classes, model.side)
    if limit is None or limit >= len(samples):
        return samples
    order = samples.labels.argsort(stable=True)  # class by class, then evenly over all of them
    return samples[order[torch.arange(limit) * len(samples) // limit].sort().values]
