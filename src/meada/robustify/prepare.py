"""From what was asked to a plan that is kept: settings, costs, estimate, and two recipes."""

import json
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from torch import nn

from meada.datasets import Task
from meada.datasets.folder import targets
from meada.datasets.pictures.survey import Survey, summary, survey
from meada.errors import MeadaError, nearest
from meada.files import write_json
from meada.lookup import Trusted
from meada.machine.device import choose
from meada.methods import METHODS
from meada.networks.normalise import Normalise
from meada.robustify.budget import Sizes, estimate, fit, told
from meada.robustify.plan import Facts, Setting, Settings, nested, plan_for
from meada.runs.parts import find
from meada.runs.recipe import Recipe, load_table, make, method_of, resolve
from meada.runs.run import build_network
from meada.runs.timing_probe import corrupting, measure
from meada.settings import flattened

SIDES = range(28, 513)  # what the corruptions are defined for
FORMAT = "meada-robustify/1"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Asked:
    """The command, with every path made absolute: the same one carries on."""

    data: str
    network: str = ""
    weights: str = ""
    method: str = "meada"
    tests: tuple[str, ...] = ()
    minutes: float | None = None
    seed: int = 0
    side: int | None = None
    changes: tuple[str, ...] = ()

    def check(self) -> None:
        if self.method not in METHODS:
            raise MeadaError(f"unknown method '{self.method}': " + nearest(self.method, METHODS))
        if self.method == "erm":
            raise MeadaError("--method erm is what the others are compared with: choose another")
        if self.side is not None and self.side not in SIDES:
            raise MeadaError(f"--side {self.side}: from 28 to 512 pixels are needed")
        if self.minutes is not None and not self.minutes > 0:
            raise MeadaError(f"--minutes {self.minutes:g}: more than none are needed")
        if self.weights and not self.network:
            raise MeadaError("--weights needs the --network that they are of")
        if self.weights and not Path(self.weights).is_file():
            raise MeadaError(f"no file of weights at {self.weights}")
        if self.network:
            find("network", self.network, trust=[self.network])


@dataclass(frozen=True)
class Prepared:
    erm: Recipe
    hardened: Recipe
    robustness: dict[str, Any]  # images, severities
    settings: Settings
    seconds: dict[str, float]  # the estimate, by phase


def read_plan(path: Path, asked: Asked) -> Prepared:
    """The plan of an earlier start; refused where something else is asked for now."""
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        before = held["asked"]
        settings = {k: Setting(*v) for k, v in held["settings"].items()}
        recipes = [resolve(held["recipes"][name], trust=_named(asked)) for name in ("erm", "hardened")]
        rest = (held["robustness"], settings, held["seconds"])
    except MeadaError:
        raise
    except (ValueError, KeyError, TypeError) as error:
        raise MeadaError(f"{path} is no plan of meada robustify: {error!r}") from None
    now = json.loads(json.dumps(asdict(asked)))
    for name in now:
        if before.get(name) != now[name]:
            raise MeadaError(
                f"{path.parent} was begun with {name} {before.get(name)!r}, not {now[name]!r}: "
                "give the same command to carry on, or another --out to begin anew"
            )
    return Prepared(recipes[0], recipes[1], *rest)


def _named(asked: Asked) -> list[str]:
    """The code that the person asked for: what a file of an earlier start names besides it is not run."""
    return [asked.network] if asked.network else []


def prepare(asked: Asked, path: Path, *, say: Say, tell: Callable[[int, int], None]) -> Prepared:
    """Look at the pictures, choose, measure, fit to the time given, and write it down."""
    began = time.monotonic()
    own = survey(Path(asked.data), tell=tell)
    met = targets(asked.tests, own, tell=tell)
    for one in {id(s): s for s in (own, *(s for s, _ in met.values()))}.values():
        report(one, say)
    settings, pinned, robust = _settings(asked, own)
    recipe = _recipe(asked, settings, "")
    task: Task = make("data", {**recipe.data, "tell": tell})
    say(
        f"{len(task.train):,} pictures to learn from, {len(task.validation):,} held out, "
        f"{len(own.classes)} classes; {sum(map(len, task.targets.values())):,} in "
        f"{len(task.targets)} tests"
    )
    if warned := task.provenance.get("warnings"):
        say(f"warning: {warned}")
    net: nn.Module = build_network(recipe, len(task.classes)).to(choose(recipe.device))
    costs = measure(recipe, task.train, deepcopy(net))
    costs = replace(costs, corrupt=corrupting(task.validation.images))
    sizes = Sizes(len(task.train), len(task.validation), tuple(len(one) for one in task.targets.values()))
    growth = method_of(recipe).growth
    whole = sum(estimate({**settings, **robust}, costs, sizes, growth).values())
    note = f"robustify: planned for {told(whole)}"
    chosen = {**settings, **robust}
    if asked.minutes is not None:
        left = asked.minutes - (time.monotonic() - began) / 60  # pictures have been read by now
        chosen = fit(chosen, costs, sizes, growth, minutes=left, pinned=pinned)
        note = f"robustify: fitted to {asked.minutes:g} minutes; in full it would take {told(whole)}"
    seconds = estimate(chosen, costs, sizes, growth)
    plain = {k: v for k, v in chosen.items() if not k.startswith("robustness.")}
    ready = Prepared(
        _recipe(asked, plain, note, method="erm"),
        _recipe(asked, plain, note),
        {k.partition(".")[2]: v.value for k, v in chosen.items() if k.startswith("robustness.")},
        chosen,
        seconds,
    )
    write_json(path, {
        "format": FORMAT, "asked": asdict(asked), "settings": chosen, "costs": asdict(costs),
        "seconds": seconds, "in_full": whole, "robustness": ready.robustness,
        "recipes": {"erm": ready.erm.model_dump(), "hardened": ready.hardened.model_dump()},
    })  # fmt: skip
    return ready


def report(found: Survey, say: Say) -> None:
    for remark in found.remarks:
        say(f"warning: {remark}")
    if found.skipped:
        say(f"warning: in {found.root} {summary(found.skipped)}")


def _settings(asked: Asked, own: Survey) -> tuple[Settings, set[str], Settings]:
    """What fits the pictures, but for the keys that were asked for; those keys."""
    facts = Facts(
        images=round(0.8 * len(own.pictures)), side=own.side,
        network=asked.network, weights=bool(asked.weights),
        normalises=_normalises(asked.network, len(own.classes)), method=asked.method,
        asked_side=asked.side,
    )  # fmt: skip
    settings = plan_for(facts)
    changes = load_table(list(asked.changes))
    settings |= {key: Setting(value, "as asked") for key, value in flattened(changes).items()}
    robust = {k: settings.pop(k) for k in list(settings) if k.startswith("robustness.")}
    known = {"robustness.images", "robustness.severities"}
    strange = [k for k in robust if k not in known]
    if strange:
        raise MeadaError(f"unknown key '{strange[0]}': " + nearest(strange[0], known))
    _check_robustness(robust)
    return settings, set(flattened(changes)), robust


def _check_robustness(robust: Settings) -> None:
    images, severities = (robust[f"robustness.{k}"].value for k in ("images", "severities"))
    if not isinstance(images, int) or images < 1:
        raise MeadaError(f"key 'robustness.images' is {images!r}: pictures from 1 up are needed")
    if not isinstance(severities, list) or not severities or not set(severities) <= {1, 2, 3, 4, 5}:
        raise MeadaError(f"key 'robustness.severities' is {severities!r}: a list such as [3, 5] is needed")


def _normalises(name: str, classes: int) -> bool:
    """Whether the step of the ascent can be read off the network."""
    if not name or ":" not in name:
        return True
    made = make("network", {"name": Trusted(name)}, num_classes=classes)
    return any(isinstance(module, Normalise) for module in made.modules())


def _recipe(asked: Asked, settings: Settings, note: str, method: str = "") -> Recipe:
    table = nested({key: one.value for key, one in settings.items()})
    name = method or asked.method
    table["method"] = {"name": name, **({} if method else table.get("method", {}))}
    data = {"name": "folder", "path": asked.data, "tests": list(asked.tests), "seed": asked.seed}
    table["data"] = {**data, **table.get("data", {})}
    if asked.weights:
        table["network"] |= {"weights": asked.weights, "partial": True}
    return resolve({"name": f"robustify/{name}", "seed": asked.seed, "note": note, **table}, trust=_named(asked))
