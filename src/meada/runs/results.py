"""End of a run: score each rule's checkpoint on every domain, and write the record."""

from copy import deepcopy
from typing import Any

from torch import nn

from meada import __version__
from meada.averaging import renew_batch_norm
from meada.datasets import Task
from meada.evaluation import evaluate
from meada.evaluation.calibration import divide_logits, temperature_on_views
from meada.evaluation.predictions import Predictions, per_image, save_predictions
from meada.evaluation.selection import RULES
from meada.files import write_json
from meada.machine.distributed import World
from meada.machine.environment import environment
from meada.minimise import Training
from meada.networks.embedding import head_of
from meada.pool import Pool
from meada.runs.checkpoint import load_weights_into, save_weights
from meada.runs.recipe import Recipe, method_name, method_of
from meada.runs.recorder import Recorder

PREDICTED = ("last", "source_val")  # the rules whose predictions are written down, image by image


def finish(recorder: Recorder, task: Task, training: Training, pool: Pool, weights: dict[str, Any]) -> None:
    """Score each rule's checkpoint on all images of every domain, then write the record."""
    recipe, folder, world = recorder.recipe, recorder.folder, recorder.world
    about = {"meada": __version__, "recipe": recipe.name, "classes": "\n".join(task.classes)}
    steps = {"last": training.step, **recorder.selection.steps}
    if recorder.mean.count:
        steps["averaged"] = training.step
    if recipe.calibrate_on:
        steps["calibrated"] = training.step
    rules = [rule for rule in RULES if rule in steps]
    scored: dict[Any, dict[str, Any]] = {}  # by step; rules that chose the same step share it
    found: dict[str, dict[str, Any]] = {}  # by rule
    selected = {rule: {"step": steps[rule], **recorder.selection.about(rule)} for rule in rules}
    net = deepcopy(training.net)
    for number, rule in enumerate(rules):
        recorder.tell("evaluate", number, len(rules))
        weights_of = rule if rule in MADE else steps[rule]
        if rule == "last":
            net.load_state_dict(training.net.state_dict())
        elif rule in MADE:
            selected[rule] |= MADE[rule](net, recorder, task, training, pool)
        elif world.is_main:
            load_weights_into(net, folder.candidate(steps[rule]))
        world.align(net)
        if world.is_main:
            save_weights(folder.selected(rule), net, {**about, "rule": rule})
        if weights_of not in scored:
            with recorder.clock.during("evaluate"):
                scored[weights_of] = _scores(net, task, world, steps[rule])
        found[rule] = scored[weights_of]
    if not world.is_main:
        return
    predictions = {rule: found[rule]["predictions"] for rule in rules if rule in PREDICTED}
    save_predictions(folder.predictions, predictions, task.classes)
    recorder.clock.switch("evaluate")
    write_json(folder.record, {
        **_settings(recipe),
        "environment": {
            **environment(),
            "device": str(next(net.parameters()).device),
            "precision": recipe.precision,
            "processes": world.size,
            "sync_batch_norm": recipe.sync_batch_norm,
        },
        "provenance": task.provenance,
        "weights": weights,
        "rounds": recorder.rounds,
        "seconds": recorder.clock.seconds,
        "steps": training.step,
        "selected": selected,
        "source": {rule: found[rule]["source"] for rule in rules},
        **({"clean": {rule: found[rule]["clean"] for rule in rules}} if task.clean else {}),
        "results": {rule: found[rule]["targets"] for rule in rules},
    })  # fmt: skip


def _averaged(net: nn.Module, recorder: Recorder, task: Task, training: Training, pool: Pool) -> dict[str, Any]:
    """Give ``net`` the mean of the weights."""
    net.load_state_dict(recorder.mean.state)
    if not recorder.recipe.freeze_batch_norm:
        renew_batch_norm(net, pool, batch_size=recorder.recipe.plan.batch_size, seed=recorder.recipe.seed)
    return {}


def _calibrated(net: nn.Module, recorder: Recorder, task: Task, training: Training, pool: Pool) -> dict[str, Any]:
    """Give ``net`` the last weights, with the head divided by a temperature."""
    recipe = recorder.recipe
    net.load_state_dict(training.net.state_dict())
    found = temperature_on_views(net, task.validation, recipe.calibrate_on, seed=recipe.seed, step=training.step)
    divide_logits(head_of(net), found)
    return {"temperature": found}


# Rules whose weights are those of no step; they return what their entry in the record has besides.
MADE = {"averaged": _averaged, "calibrated": _calibrated}


def _settings(recipe: Recipe) -> dict[str, Any]:
    return {
        "meada": __version__,
        "recipe": recipe.name,
        "note": recipe.note,
        "method": method_name(recipe),
        "passes": dict(zip(("forward", "backward"), method_of(recipe).passes, strict=True)),
        "network": recipe.network["name"],
        "data": recipe.data["name"],
        "seed": recipe.seed,
        "scale": recipe.scaled,
    }


def _scores(net: nn.Module, task: Task, world: World, step: int) -> dict[str, Any]:
    """Scores on the held-out source, the source's test split if there is one, and every target."""
    own, kept = {"source": task.validation} | ({"clean": task.clean} if task.clean else {}), Predictions()
    keep = lambda name, *pair: kept.update({name: per_image(*pair)})
    domains = {k: (s.images, s.labels) for k, s in own.items()}
    scores: dict[str, Any] = evaluate(net, domains, each=keep, world=world, step=step)
    scores["targets"], scores["predictions"] = {}, kept
    for name, one in task.targets.items():  # one at a time: a target may be read from disk when it is asked for
        pair = {name: (one.images, one.labels)}
        scores["targets"] |= evaluate(net, pair, severities=task.severities, each=keep, world=world, step=step)
    return scores
