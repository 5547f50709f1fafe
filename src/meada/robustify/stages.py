"""The stages of ``robustify``: each writes its files atomically and is skipped if they exist."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from meada.averaging import interpolate
from meada.datasets import Samples, Task
from meada.deploy.model import SEVERAL, save_model
from meada.evaluation import predict
from meada.files import write_json
from meada.machine.terminal import Count, Tell
from meada.networks.embedding import features, head_name
from meada.pool import as_float, as_stored
from meada.robustify import labels, training
from meada.robustify.budget import OPEN, Budget, Stopwatch
from meada.robustify.plan import FEWEST_TRIAL, Plan, Request
from meada.robustify.probe import best_head, fit_into
from meada.robustify.scoring import fitted, score_all, sets
from meada.runs.checkpoint import load_weights_into
from meada.runs.network import build_network
from meada.runs.recipe import Recipe, resolve
from meada.runs.run_folder import read_json
from meada.types import Families

PROBED = 4_000_000  # maximum of training pictures x classes that a head is fitted on, at least 2,000 pictures
CROP: Families = frozenset({"geometry"})  # what plain fine-tuning trains on: crop and flip


@dataclass
class Work:
    """A run and its folder."""

    request: Request
    out: Path
    task: Task
    plan: Plan
    budget: Budget | None = None  # without one the plan does not change
    facts: dict[str, Any] = field(default_factory=dict)  # result of each finished stage, by its name

    def recipe(self, rate: float = 0.0) -> Recipe:
        """The recipe that rebuilds the network of a candidate."""
        plan, request = self.plan, self.request
        network: dict[str, Any] = {"name": plan.network}
        if plan.weights:
            network |= {"weights": plan.weights, "partial": True}
        elif plan.pretrained:
            network |= {"pretrained": True}
        return resolve({
            "name": "robustify", "seed": request.seed, "network": network, "method": {"name": "erm"},
            "data": {  # all that decides which pictures are held out, so that no other ones are scored as held out
                "name": "folder", "path": request.data, "tests": request.tests, "side": plan.side, "seed": request.seed,
                "held_out": plan.held_out, "group": request.group, "test": plan.test or None, "multilabel": True,
            },
            "plan": {"rounds": 0, "min_steps": 0, "total_steps": plan.steps, "batch_size": plan.batch_size},
            "descent": plan.descent(rate or plan.hardened_rate).model_dump(),
        }, trust=[request.network] if request.network else ())  # fmt: skip

    def fresh(self) -> nn.Module:
        """The network before training: pretrained weights with a random head, or random weights."""
        return build_network(self.recipe(), len(self.task.classes))

    def path(self, name: str) -> Path:
        return self.out / "candidates" / f"{name}.safetensors"

    def checkpoint(self, name: str) -> Path:
        return self.out / "stages" / f"{name}.checkpoint"

    def save(self, name: str, net: nn.Module, rate: float = 0.0) -> None:
        save_model(self.path(name), net, self.recipe(rate), self.task.classes, self.about())

    def about(self) -> dict[str, str]:
        """Metadata of a model file about its labels."""
        return {SEVERAL: "yes"} if self.task.multilabel else {}

    def load(self, name: str) -> nn.Module:
        net = build_network(self.recipe(), len(self.task.classes), file=False)
        load_weights_into(net, self.path(name))
        return net

    def seconds(self) -> dict[str, float]:
        """Duration of each finished stage."""
        return {name: float(one["seconds"]) for name, one in self.facts.items()}

    @property
    def trained(self) -> Families:
        """Families of image changes that some candidate was trained on."""
        return CROP | training.space_of(self.facts["families"]["colour"]).families

    @property
    def names(self) -> list[str]:
        absent = () if self.plan.pretrained else ("probe", "interpolated")
        every = ["plain", "plain_repeat", "probe", "hardened", "averaged", "interpolated"]
        return [name for name in every if name not in absent] + (["own"] if self.request.model else [])


def probe(work: Work, tell: Count) -> dict[str, Any]:
    """Logistic regression on the features of each picture and of its mirror image."""
    net, held = work.fresh(), work.task.validation
    most = max(PROBED // len(work.task.classes), 2000)
    train = capped(work.task.train, min(work.plan.probe or most, most))
    both = torch.cat([train.images, train.images.flip(-1)])
    fitted_on = features(net, both), torch.cat([train.labels, train.labels])
    head, penalty = best_head(fitted_on, (features(net, held.images), held.labels), len(work.task.classes))
    fit_into(net, head)
    work.save("probe", net)
    return {"penalty": penalty, "pictures": len(train)}


def families(work: Work, tell: Count) -> dict[str, Any]:
    """Decide whether views may change colour."""
    if not work.plan.pretrained:
        return {"colour": True}  # without pretrained weights there is no probe
    return training.choose_families(work.load("probe"), work.task.validation)


def rate(work: Work, tell: Count) -> dict[str, Any]:
    """Choose the learning rate of plain fine-tuning by short trials, scored on held-out pictures.

    It is the lowest rate within one standard error of the best: short trials favour high ones. Without trials it is
    the plan's first, or the highest if there are very few steps (decision 78).
    """
    plan, tried = work.plan, dict[str, float]()
    if not plan.trial_steps or len(plan.rates) == 1:
        return {"rate": plan.rates[0] if plan.steps >= FEWEST_TRIAL else max(plan.rates), "tried": tried}
    for k, value in enumerate(plan.rates):
        start = lambda d, n, k=k: tell(k * n + d, len(plan.rates) * n)
        net = work.fresh()
        training.tune(net, work.task.train, _plain(work, value, plan.trial_steps, 0), tell=start)
        tried[str(value)] = accuracy(net, work.task.validation)
    best = max(tried.values())
    error = 100 * math.sqrt(best / 100 * (1 - best / 100) / len(work.task.validation))
    return {"rate": min(value for value in plan.rates if tried[str(value)] >= best - error), "tried": tried}


def plain(work: Work, tell: Count, name: str = "plain", repeat: int = 0) -> dict[str, Any]:
    """Fine-tune from the initial weights; a repeat has another order of batches, crops and flips."""
    value, net = work.facts["rate"]["rate"], work.fresh()
    how = _plain(work, value, work.plan.steps, repeat)
    training.tune(net, work.task.train, how, work.checkpoint(name), tell)
    work.save(name, net, value)
    return {"rate": value, "steps": how.steps}


def hardened(work: Work, tell: Count) -> dict[str, Any]:
    """Train on clean pictures and hard views, starting from the probe; also keep the mean of the weights."""
    plan, space = work.plan, training.space_of(work.facts["families"]["colour"])
    net = work.load("probe") if plan.pretrained else work.fresh()
    method = training.hardened(plan.side, space, views=plan.views, hardness=plan.hardness)
    how = training.Tuning(
        method, plan.descent(plan.hardened_rate), plan.steps_of("hardened"), plan.batch_size, work.request.seed,
        frozen=plan.pretrained, average_from=plan.average_from, clip=_clip(plan),
    )  # fmt: skip
    mean = training.tune(net, work.task.train, how, work.checkpoint("hardened"), tell)
    work.save("hardened", net)
    net.load_state_dict(mean.state)
    work.save("averaged", net)
    return {"rate": plan.hardened_rate, "steps": how.steps, "averaged": mean.count}


def interpolated(work: Work, tell: Count) -> dict[str, Any]:
    """Interpolate the backbone between pretrained and averaged weights; held-out shifts choose the position."""
    first, last = work.load("probe"), work.load("averaged")
    keep = [f"{head_name(last)}.{part}" for part in ("weight", "bias")]
    start, end = ({k: v.clone() for k, v in net.state_dict().items()} for net in (first, last))
    made = scored_sets(work, {}, [3], work.request.seed + 1)
    chosen = {name: eight_bits(*make()) for name, make in made.items() if not name.startswith("corruption/")}
    scores, clean, positions = {}, {}, [*work.plan.interpolation, 1.0]
    for k, t in enumerate(positions):
        tell(k, len(positions))
        first.load_state_dict(interpolate(start, end, t, keep))
        found = {name: accuracy(first, samples) for name, samples in chosen.items()}
        clean[t] = found.pop("held_out")
        scores[t] = sum(found.values()) / len(found)
    near = [t for t in positions if clean[t] >= max(clean.values()) - 1.0 and t < 1.0] or positions[-2:][:1]
    best = max(near, key=scores.__getitem__)
    first.load_state_dict(interpolate(start, end, best, keep))
    work.save("interpolated", first)
    return {"position": best, "held_out": {str(t): v for t, v in clean.items()},
            "shifts": {str(t): v for t, v in scores.items()}}  # fmt: skip


def score(work: Work, tell: Count) -> dict[str, Any]:
    """Score all candidates on the same pixels."""
    tests = {name: capped(one, work.plan.test) for name, one in work.task.targets.items()}
    made = scored_sets(work, tests, work.plan.severities, work.request.seed)
    nets = {name: own_model(work) if name == "own" else work.load(name) for name in work.names}
    score_all(nets, made, work.out / "scores", tell)
    return {"sets": list(made)}


def own_model(work: Work) -> nn.Module:
    """The model given as ``--model``; it may run the code that ``--network`` names."""
    return fitted(work.request.model, work.task, [work.request.network] if ":" in work.request.network else [])


def accuracy(net: nn.Module, samples: Samples) -> float:
    return labels.accuracy(predict(net, samples.images, batch_size=64), samples.labels)


def eight_bits(images: Tensor, y: Tensor) -> Samples:
    return Samples(as_stored(as_float(images), torch.uint8), y)


def capped(samples: Samples, n: int) -> Samples:
    """At most ``n`` samples, evenly spaced, so that each class is represented; 0: all."""
    return samples[torch.arange(n) * len(samples) // n] if 0 < n < len(samples) else samples


def scored_sets(work: Work, tests: dict[str, Samples], severities: list[int], seed: int) -> dict[str, Any]:
    held_out, n = work.task.validation, work.plan.shifted
    return sets(held_out, tests, trained=work.trained, shifted_n=n, severities=severities, seed=seed)


Stage = Callable[[Work, Count], dict[str, Any]]
STAGES: dict[str, Stage] = {
    "probe": probe, "families": families, "rate": rate, "plain": plain,
    "plain_repeat": partial(plain, name="plain_repeat", repeat=1), "hardened": hardened,
    "interpolated": interpolated, "score": score,
}  # fmt: skip


def carry_out(work: Work, tell: Tell, expect: Callable[[dict[str, float]], None] = lambda seconds: None) -> None:
    """Run all unfinished stages in order; write the result and duration of each when it ends."""
    for name, stage in STAGES.items():
        if name in ("probe", "interpolated") and not work.plan.pretrained:
            continue
        path = work.out / "stages" / f"{name}.json"
        revise(work, name)
        if not path.is_file():
            expect(work.budget.forecast(work.plan, work.seconds()) if work.budget else {})
            tell(name, 0, 1)
            watch = Stopwatch(lambda done, n, name=name: tell(name, done, n))  # type: ignore[misc]
            found = stage(work, watch.tell)
            write_json(path, {**found, "seconds": watch.seconds()})
        work.facts[name] = read_json(path)
        tell(name, 1, 1)
        work.checkpoint(name).unlink(missing_ok=True)


def revise(work: Work, name: str) -> None:
    """Fit the plan to the time left; a resumed stage repeats its earlier decision."""
    path = work.out / "stages" / f"{name}.plan.json"
    if work.budget is None or name not in OPEN:
        return
    if not path.is_file():
        new = work.budget.revised(work.plan, name, work.seconds()).model_dump()
        write_json(path, {key: new[key] for key in OPEN[name]})
    work.plan = Plan(**{**work.plan.model_dump(), **read_json(path)})


def _plain(work: Work, value: float, steps: int, repeat: int) -> training.Tuning:
    plan, seed = work.plan, work.request.seed + 1_000_003 * repeat
    return training.Tuning(
        training.plain(plan.side), plan.descent(value), steps, plan.batch_size, seed, clip=_clip(plan)
    )


def _clip(plan: Plan) -> float:
    """From scratch, gradients are not clipped."""
    return plan.clip if plan.pretrained else math.inf
