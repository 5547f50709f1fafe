"""Commands that use a trained model: ``meada evaluate``, ``predict``, ``export``, ``push`` and ``perturb``."""

import math
from collections.abc import Mapping
from csv import writer
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from meada.cli.early_checks import Json, ModelPath, Quiet, Trust
from meada.errors import MeadaError, nearest, some
from meada.files import json_text, write_json, write_text
from meada.machine.terminal import SafeConsole, printable, progress

if TYPE_CHECKING:
    from torch import nn

    from meada.datasets import Samples, Task
    from meada.deploy.model import Model
    from meada.deploy.predictions import Prediction


def evaluate(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run or of meada robustify.")],
    on: Annotated[
        list[str] | None,
        typer.Option(help="Domains; source: the held-out pictures. [default: all that the recipe names]"),
    ] = None,
    rule: Annotated[str, typer.Option(help="Rule of the checkpoint: last, source_val, crafted or oracle.")] = "last",
    pgd: Annotated[int, typer.Option(min=0, help="Also attack N images per domain (PGD), for meada report.")] = 0,
    as_json: Json = False,
    trust: Trust = None,
) -> None:
    """Score a finished run's model.

    Example: meada evaluate runs/meada-3 --on svhn --json
    """
    from meada.deploy.model import PLAN, open_model
    from meada.evaluation.attack import under_attack
    from meada.reports.page.text import print_scores
    from meada.runs.functions import make, refuse_untrusted
    from meada.runs.network import load_model
    from meada.runs.run_folder import RunFolder

    folder, delivered = RunFolder(run), (run / PLAN).is_file()
    if delivered and rule != "last":
        raise MeadaError(f"--rule must be last for a folder of meada robustify, got {rule}")
    model = open_model(run, trust or ()) if delivered else None
    recipe = model.recipe if model else folder.load_recipe(trust or ())
    refuse_untrusted({"data": recipe.data, "network": recipe.network})
    task = make("data", recipe.data)
    if delivered:
        _refuse_other_pictures(run / PLAN, recipe.data)
    if pgd and task.multilabel:
        raise MeadaError(f"--pgd must be 0 for a model of several labels per picture, got {pgd}")
    chosen = _domains(task, on or (["source", *task.targets] if delivered else [*task.targets]))
    net = model.net if model else load_model(folder, len(task.classes), rule, trust or ())
    scores = _scores(net, chosen, multilabel=task.multilabel)
    if pgd:
        targets = chosen if on else {"source": task.validation, **chosen}
        attack = {"rule": rule, **under_attack(net, targets, n=pgd)}
        write_json(folder.attack, attack)
        scores = {name: {**s, "pgd": attack["domains"][name]} for name, s in scores.items()}
    if as_json:
        typer.echo(json_text(scores))
        return
    print_scores(scores, title=f"{run} ({rule})")
    if pgd:
        for name, s in attack["domains"].items():
            attacked = f"{s['attacked']:.1f} % of {s['n']} images under an attack of {attack['radius']:g} levels of 255"
            typer.echo(f"{name}: {attacked}, {s['clean']:.1f} % without")


def _domains(task: "Task", names: list[str]) -> "dict[str, Samples]":
    """The named domains of the task."""
    known = {"source": task.validation, **({"clean": task.clean} if task.clean else {}), **task.targets}
    for name in names:
        if name not in known:
            raise MeadaError(f"unknown domain '{name}': " + nearest(name, known))
    return {name: known[name] for name in names}


def _scores(net: "nn.Module", domains: "dict[str, Samples]", *, multilabel: bool) -> dict[str, Any]:
    from meada.evaluation import evaluate as score
    from meada.evaluation.score import finite_logits
    from meada.robustify.scoring import full_score

    if multilabel:
        return {name: full_score(finite_logits(net, s.images, name), s.labels) for name, s in domains.items()}
    return score(net, {name: (s.images, s.labels) for name, s in domains.items()})


def _refuse_other_pictures(plan: Path, data: Mapping[str, Any]) -> None:
    """Refuse pictures that were added, removed or changed after the run: held-out ones may have been trained on."""
    from meada.datasets.folder import divide
    from meada.robustify.same_pictures import hashes, same_pictures
    from meada.runs.run_folder import read_json

    held = read_json(plan).get("pictures")
    if isinstance(held, dict):  # version 0.1 wrote none
        divided = divide(
            data["path"], (), held_out=data["held_out"], seed=data["seed"], group=data["group"], multilabel=True
        )
        own = {name: value for name, value in held.items() if name.startswith("data")}
        same_pictures(hashes(divided), own, plan.parent, "held-out pictures may have been trained on")


def predict(
    model: ModelPath,
    images: Annotated[list[Path], typer.Argument(help="Pictures, folders, or quoted patterns ('*.jpg').")],
    top: Annotated[int, typer.Option("--top", "--top-k", help="Labels per picture, most likely first.", min=1)] = 1,
    abstain: Annotated[
        float | None, typer.Option(min=0, help="Entropy (nats) above which no label is given. [default: the model's]")
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="Write a CSV file.")] = None,
    as_json: Json = False,
    trust: Trust = None,
) -> None:
    """Label, probability and entropy (in nats) of pictures.

    Example: meada predict hardened holiday/*.jpg --json
    """
    from meada.deploy.model import open_model
    from meada.deploy.predictions import pictures_in, predict_files

    if abstain is not None and not abstain >= 0:
        raise MeadaError(f"--abstain must be 0 nats or more, got {abstain:g}")
    opened = open_model(model, trust or ())
    limit = opened.abstain_entropy if abstain is None else abstain
    predictions = predict_files(opened, pictures_in(images), top)
    if csv:
        _write_csv(csv, predictions, limit, top)
    if as_json:
        typer.echo(json_text([one.line(limit) for one in predictions], indent=2))
    elif not csv:
        _print(opened, predictions, limit)
    bad = [f"{one.file} {one.error}" for one in predictions if one.error]
    if bad:
        raise MeadaError(some(bad, between="; "))


def _write_csv(path: Path, predictions: "list[Prediction]", limit: float | None, top: int) -> None:
    text = StringIO()
    rows = writer(text)
    ranks = [name for k in range(2, top + 1) for name in (f"label_{k}", f"probability_{k}")]
    rows.writerow(["file", "label", "probability", "entropy", "abstain", *ranks, "error"])
    for one in predictions:
        flat = [value for pair in one.best[1:] for value in pair]
        best = [one.label, one.probability, one.entropy] if one.best else ["", "", ""]
        unsure = "" if limit is None or one.error else str(one.entropy > limit).lower()
        rows.writerow([one.file, *best, unsure, *flat, *[""] * (len(ranks) - len(flat)), one.error])
    write_text(path, text.getvalue())


def _print(model: "Model", predictions: "list[Prediction]", limit: float | None) -> None:
    from rich.table import Table

    n = len(model.classes)
    most = n * math.log(2) if model.multilabel else math.log(n)
    table = Table(title=f"{model.path} (entropy in nats, at most {most:.2f})")
    for name in ("file", "label"):
        table.add_column(name, overflow="fold")  # a path is shown whole
    for name in ("probability", "entropy"):
        table.add_column(name, justify="right", overflow="fold")
    for one in predictions:
        if not one.error:
            unsure = "(unsure) " if limit is not None and one.entropy > limit else ""
            labels = "\n".join(label for label, _ in one.best)
            chances = "\n".join(f"{p:.3f}" for _, p in one.best)
            table.add_row(one.file, unsure + labels, chances, f"{one.entropy:.3f}")
    SafeConsole().print(table)


def export(
    model: ModelPath, onnx: Annotated[Path, typer.Option(help="The ONNX file to write.")], trust: Trust = None
) -> None:
    """Write a model as ONNX, after a check that ONNX Runtime gives the same logits.

    Images go in as pixels in [0, 1], any number at a time; normalisation and class names are in the file.

    Example: meada export hardened --onnx hardened.onnx
    """
    from meada.deploy.model import open_model
    from meada.deploy.onnx import export_onnx

    opened = open_model(model, trust or ())
    checked = export_onnx(opened, onnx)
    real = f"{checked.real} of them real" if checked.real else "all of them random"
    typer.echo(
        f"{printable(onnx)}: images (batch, 3, {opened.side}, {opened.side}) to logits of "
        f"{len(opened.classes)} classes; ONNX Runtime agrees to {checked.difference:.1e} on "
        f"{checked.images} images, {real}"
    )


def push(
    folder: ModelPath,
    name: Annotated[str, typer.Argument(help="Repository to upload to: USER/NAME.")],
    private: Annotated[bool, typer.Option("--private", help="Make a new repository private.")] = False,
    trust: Trust = None,
) -> None:
    """Upload a model and its card to the Hugging Face Hub.

    Log in first (hf auth login). Others use it by meada.load("hf://USER/NAME") or meada predict hf://USER/NAME.
    Only model.safetensors and the card (as README.md) are uploaded; they name the folders of the training
    pictures and of --test.

    Example: meada push hardened ada/cells --private
    """
    from meada.deploy import hub

    typer.echo(hub.push(folder, name, private=private, trust=trust or ()))


def perturb(
    source: Annotated[Path, typer.Argument(help="A run of ada, meada or noise; with --model, a folder of pictures.")],
    out: Annotated[Path, typer.Option(help="The new folder to write CLASS/*.png to.")],
    model: Annotated[Path | None, typer.Option(help="The run, if SOURCE is pictures.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most N pictures, spread over the classes.")] = None,
    quiet: Quiet = False,
    trust: Trust = None,
) -> None:
    """Write an adversarial set: one maximisation round by the run's own method and settings.

    With a run's folder, the pictures that it was trained on are made harder for its model.

    Example: meada perturb runs/meada-3 --out harder
    """
    from meada.deploy.adversarial import samples_of, write_adversarial
    from meada.deploy.model import open_model

    opened = open_model(model or source, trust or ())
    with progress("perturb", quiet=quiet) as tell:
        samples = samples_of(opened, source if model else None, limit)
        written = write_adversarial(opened, samples, out, source=str(source), tell=tell)
    if not quiet:
        typer.echo(
            f"{written['images']:,} pictures in {written['classes']} classes in {printable(out)}; the largest "
            f"change of a pixel is {written['levels']['mean']:.1f} of 255 levels on average, "
            f"{written['levels']['largest']:.1f} at most"
        )
