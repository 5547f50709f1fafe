"""The end of a run: score each rule's choice on the whole of every domain, and write the record."""

from copy import deepcopy
from typing import Any

from torch import nn

from meada import __version__
from meada.datasets import Task
from meada.evaluation import evaluate
from meada.evaluation.predictions import Predictions, save_predictions
from meada.evaluation.selection import RULES
from meada.files import write_json
from meada.machine.distributed import World
from meada.machine.environment import environment
from meada.minimise import Training
from meada.runs.checkpoint import load_weights_into, save_weights
from meada.runs.recipe import Recipe, method_name, method_of
from meada.runs.recorder import Journal
from meada.runs.run_folder import RunFolder

PREDICTED = ("last", "source_val")  # the rules whose predictions are written down, image by image


def finish(
    recipe: Recipe,
    folder: RunFolder,
    task: Task,
    training: Training,
    journal: Journal,
    weights: dict[str, Any],
    world: World,
) -> None:
    """Score each rule's choice on the whole of every domain, then write the record."""
    about = {"meada": __version__, "recipe": recipe.name, "classes": "\n".join(task.classes)}
    results, sources, cleans = {}, {}, {}
    steps = {"last": training.step, **journal.selection.steps}
    rules = [rule for rule in RULES if rule in steps]
    scored: dict[int, dict[str, Any]] = {}
    net = deepcopy(training.net)
    for number, rule in enumerate(rules):
        journal.tell("evaluate", number, len(rules))
        if rule == "last":
            net.load_state_dict(training.net.state_dict())
        elif world.first:
            load_weights_into(net, folder.candidate(steps[rule]))
        world.align(net)
        if world.first:
            save_weights(folder.selected(rule), net, {**about, "rule": rule})
        if steps[rule] not in scored:
            with journal.clock.during("evaluate"):
                scored[steps[rule]] = _scores(net, task, world, steps[rule])
        results[rule] = scored[steps[rule]]["targets"]
        sources[rule] = scored[steps[rule]]["source"]
        cleans[rule] = scored[steps[rule]].get("clean")
    if not world.first:
        return
    told = {rule: scored[steps[rule]]["predictions"] for rule in rules if rule in PREDICTED}
    save_predictions(folder.predictions, told, task.classes)
    journal.clock.switch("evaluate")
    write_json(folder.record, {
        "meada": __version__,
        "recipe": recipe.name,
        "note": recipe.note,
        "method": method_name(recipe),
        "passes": dict(zip(("forward", "backward"), method_of(recipe).passes, strict=True)),
        "network": recipe.network["name"],
        "data": recipe.data["name"],
        "seed": recipe.seed,
        "scale": recipe.scaled,
        "environment": {
            **environment(),
            "device": str(next(net.parameters()).device),
            "precision": recipe.precision,
            "processes": world.size,
            "sync_batch_norm": recipe.sync_batch_norm,
        },
        "provenance": task.provenance,
        "weights": weights,
        "rounds": journal.rounds,
        "seconds": journal.clock.seconds,
        "steps": training.step,
        "selected": {rule: {"step": steps[rule], **journal.selection.about(rule)} for rule in rules},
        "source": sources,
        **({"clean": cleans} if task.clean else {}),
        "results": results,
    })  # fmt: skip


def _scores(net: nn.Module, task: Task, world: World, step: int) -> dict[str, Any]:
    """Held-out source, the source's own test split if there is one, and every target in turn."""
    own = {"source": task.validation} | ({"clean": task.clean} if task.clean else {})
    kept = Predictions()
    domains = {k: (s.images, s.labels) for k, s in own.items()}
    scores: dict[str, Any] = evaluate(net, domains, each=kept.keep, world=world, step=step)
    scores["targets"], scores["predictions"] = {}, kept
    for name in task.targets:  # one at a time: a target may be read from disk when it is asked for
        one = task.targets[name]
        scores["targets"] |= evaluate(
            net,
            {name: (one.images, one.labels)},
            severities=task.severities,
            each=kept.keep,
            world=world,
            step=step,
        )
    return scores
