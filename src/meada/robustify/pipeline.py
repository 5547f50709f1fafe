"""Robustify: ERM and a method on the same pictures, both tried, the hardened model written."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from meada.datasets import Task
from meada.deploy.model import PLAN, save_model
from meada.errors import MeadaError
from meada.evaluation.attack import under_attack
from meada.files import write_json, write_text
from meada.robustify.card import card
from meada.robustify.prepare import Asked, Prepared, prepare, read_plan
from meada.robustify.robustness import robustness
from meada.robustify.sections import write_report
from meada.runs.parts import code_in
from meada.runs.recipe import make
from meada.runs.run import load_model, run
from meada.runs.run_folder import RunFolder

Tell = Callable[[str, int, int], None]
Bar = Callable[[str], AbstractContextManager[Tell]]  # progress under a label


@dataclass(frozen=True)
class Outcome:
    before: dict[str, Any]  # ERM's record
    after: dict[str, Any]  # the method's
    plan: Prepared


def planned(asked: Asked, out: Path, *, say: Callable[[str], None], bar: Bar) -> Prepared:
    """The plan of this folder: made now, or kept from an earlier start of the same command."""
    asked.check()
    path = out / PLAN
    if path.is_file():
        say(f"{out} is carried on")
        return read_plan(path, asked)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise MeadaError(f"{out} is there and holds no plan of robustify: --out needs a new folder")
    with bar("robustify") as tell:
        return prepare(asked, path, say=say, tell=lambda done, n: tell("reading pictures", done, n))


def carried_out(plan: Prepared, out: Path, *, bar: Bar) -> Outcome:
    """Train both, try both, write everything down; whatever is done already is left as it is."""
    folders = {
        "erm": RunFolder(out / "erm"),
        "hardened": RunFolder(out / plan.hardened.method["name"]),
    }
    recipes = {"erm": plan.erm, "hardened": plan.hardened}
    for name, folder in folders.items():
        with bar(folder.path.name) as tell:
            run(recipes[name], folder.path, resume=folder.recipe.exists(), tell=tell)
    task: Task = make("data", plan.hardened.data)
    records = {name: folder.load_record() for name, folder in folders.items()}
    trust = [name for _, name in code_in(plan.hardened.model_dump())]
    nets = {name: load_model(folder, len(task.classes), trust=trust) for name, folder in folders.items()}
    if any("robustness" not in record for record in records.values()):
        with bar("both models") as tell:
            found = robustness(nets, task.validation, **plan.robustness, seed=plan.hardened.seed, tell=tell)
        records = {name: {**records[name], "robustness": found[name]} for name in records}
        for name, folder in folders.items():
            write_json(folder.record, records[name])
    for name, folder in folders.items():
        if not folder.attack.exists():  # people will ask
            held = {"held-out pictures": task.validation}
            found = under_attack(nets[name], held, n=plan.robustness["images"])
            write_json(folder.attack, {"rule": "last", **found})
    _write(out, plan, records, nets["hardened"], task)
    return Outcome(records["erm"], records["hardened"], plan)


def _write(out: Path, plan: Prepared, records: dict[str, dict[str, Any]], net: nn.Module, task: Task) -> None:
    recipe, before, after = plan.hardened, records["erm"], records["hardened"]
    save_model(out / "model.safetensors", net, recipe, task.classes)
    write_text(out / "MODEL_CARD.md", card(recipe, plan.settings, before, after, task.classes))
    write_report(out, before, after)
