"""``meada.robustify``: read the pictures, plan, train the candidates, score them and deliver the best one."""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from meada import __version__
from meada.datasets import Task
from meada.datasets.folder import Division, divide, load_task, remarks_on_tests
from meada.datasets.from_python import pictures_of
from meada.datasets.pictures.survey import summary, survey
from meada.deploy.model import PLAN, save_model
from meada.errors import MeadaError
from meada.evaluation.calibration import divide_logits
from meada.files import DRAFT, SUMS, keep_sums, remove_drafts, write_json, write_text
from meada.machine.environment import environment
from meada.machine.memory import keep_freed_memory
from meada.networks.embedding import head_name, head_of
from meada.robustify.budget import Budget, measure
from meada.robustify.outcome import ABOUT, FORMAT, RULE, Outcome, card, entropy_limit, judge, seconds
from meada.robustify.page import training_views, write_report
from meada.robustify.plan import HELD_OUT, Plan, Request, default_seconds, duration, plan_for
from meada.robustify.progress import Bar, progress
from meada.robustify.rule import run_to_run, smallest_difference
from meada.robustify.same_pictures import hashes, same_pictures
from meada.robustify.scoring import Scores
from meada.robustify.stages import Work, carry_out, own_model
from meada.runs.network import fresh_network
from meada.runs.recipe import load_table
from meada.runs.run_folder import RunFolder, read_json

Say = Callable[[str], None]
FORMAT_OF_PLAN = "meada-robustify/3"
KEYS = ("request", "plan", "budget", "pictures")  # needed to resume


def robustify(
    data: Any, out: str | Path, *, test: Any = (),
    network: str | None = None, weights: str | Path | None = None, model: str | Path | None = None,
    minutes: float | None = None, seed: int = 0, side: int | None = None, group: str = "",
    settings: Sequence[str] = (), quiet: bool = False, say: Say = print,
) -> Outcome:  # fmt: skip
    """Train several candidates on your own pictures and deliver the one with the best held-out results.

    Args:
        data: a folder ``CLASS/*.jpg`` or ``DOMAIN/CLASS/*.jpg``, a CSV file of path,label, a torch ``Dataset`` of
            (image, label) or a Hugging Face dataset.
        out: the folder to write to; repeat the same call to resume an interrupted one.
        test: pictures from other sources with the same classes, in any of these forms, or a list of several; not used
            for training or for choosing the delivered model.
        network: a name (``meada list``), FILE.py:function, module:function or timm:NAME.
        weights: a file of initial weights for ``network``.
        model: an existing model (a folder or file of meada) to score next to the candidates.
        minutes: time budget; default: about 15 for 1,000 pictures.
        seed: seed of the split, the initial weights and the order of batches.
        side: width and height that pictures are resized to.
        group: a column of the CSV file, or a regular expression on the path; pictures of one group are never divided
            between training and held-out pictures.
        settings: changes to the plan, such as ``"steps=200"``.
        quiet: print no messages and no progress bar.
        say: called with messages about the data and the plan.
    """
    if not isinstance(out, str | Path):
        raise MeadaError(f"out must be a folder to write to, got {type(out).__name__}")
    home, there = Path(out), Path(out).resolve()
    if not (there / PLAN).is_file() and there.exists() and (not there.is_dir() or _taken(there)):
        raise MeadaError(f"--out must be a new folder or one that robustify began, got {home}")
    if not isinstance(group, str):
        raise MeadaError(f"group must be a column of the CSV file or a regular expression, got {type(group).__name__}")
    tests = test if isinstance(test, list | tuple | Iterator) else [test]
    kept = lambda one, name: _place(pictures_of(one, home.absolute() / "pictures", name=name, group=group))
    request = Request(
        data=kept(data, "data"), tests=tuple(kept(one, f"test{k}") for k, one in enumerate(tests, 1)),
        network=_network(network or ""), weights=_place(weights, "weights"), model=_place(model, "model"),
        minutes=minutes, seed=seed, side=side, group=group, changes=tuple(settings),
    )  # fmt: skip
    say = (lambda text: None) if quiet else say
    request.check()
    keep_freed_memory()
    with RunFolder(home).lock(), progress(quiet) as bar:
        remove_drafts(home)
        if not keep_sums(home) and (home / PLAN).is_file():
            warnings.warn(f"{home} has no {SUMS}: damage to its older files cannot be noticed", stacklevel=2)
        work = planned(request, home, say=say, bar=bar)
        before = work.plan.model_dump()
        carry_out(work, bar.tell, bar.expect)
        changed = [f"{key} {before[key]} -> {now}" for key, now in work.plan.model_dump().items() if now != before[key]]
        if changed:
            say(f"changed during the run to keep to the time: {', '.join(changed)}")
        return deliver(work)


def planned(request: Request, out: Path, *, say: Say, bar: Bar) -> Work:
    """Make the plan of this folder, or read it if the folder is resumed."""
    path = out / PLAN
    if path.is_file():
        held = _read(path)
        request.same_as(held["request"], out)
        say(f"resuming {out}")
        budget = Budget.read(held["budget"])
        divided = division(request, budget.whole, bar)
        same_pictures(hashes(divided), held["pictures"], out)
        return Work(request, out, load(divided, budget.whole, bar), Plan(**held["plan"]), budget)
    began = time.monotonic()
    found = survey(Path(request.data), group=request.group, tell=bar.reading)
    for remark in [*found.remarks, *([f"in {found.root} {summary(found.skipped)}"] if found.skipped else [])]:
        say(f"warning: {remark}")
    n, changes = len(found.pictures), load_table(list(request.changes))
    held_out = max(1, round(HELD_OUT * n))
    whole = plan_for(n - held_out, held_out, found.side, request, changes)
    divided = division(request, whole, bar)
    for remark in remarks_on_tests(divided):
        say(f"warning: {remark}")
    work = Work(request, out, load(divided, whole, bar), whole)
    check_network(work)  # and the person's own model: refused now rather than after the training
    if request.model:
        own_model(work)
    bar.tell("timing", 0, 1)
    costs, task = measure(work.fresh(), work.task, whole), work.task
    limit = 60 * request.minutes if request.minutes is not None else default_seconds(n)
    sizes = tuple(len(one) for one in task.targets.values())
    spent = time.monotonic() - began
    budget = Budget(limit, spent, whole, costs, len(task.train), len(task.validation), sizes, tuple(changes))
    work.plan, work.budget = budget.fitted(), budget
    write_json(path, {
        "format": FORMAT_OF_PLAN, "request": asdict(request), "plan": work.plan.model_dump(),
        "seconds": budget.seconds(work.plan), "budget": budget.as_json(),
        "pictures": {name: "".join(part.values()) for name, part in hashes(divided).items()},
    })  # fmt: skip
    _announce(task, work.plan, budget, say)
    return work


def check_network(work: Work) -> None:
    """Refuse a network without an output per class and weights that are not of this network.

    Only the last layers may be missing in the file: a head for other classes is replaced.
    """
    net, account = fresh_network(work.recipe(), len(work.task.classes), file=True)
    if (found := head_of(net).out_features) != (n := len(work.task.classes)):
        raise MeadaError(f"network '{work.plan.network}' must have {n} outputs, one per class, got {found}")
    head = f"{head_name(net)}."
    names = [name for name, _ in net.named_parameters() if not name.startswith(head)]
    missing = [name for name in names if name in account.get("left_at_random", ())]
    if missing != names[len(names) - len(missing) :]:
        raise MeadaError(
            f"{work.plan.weights} must hold the weights of '{work.plan.network}' in the same shapes, except for "
            f"its last layers, got none that fit {missing[0]}"
        )


def division(request: Request, plan: Plan, bar: Bar) -> Division:
    """Scan the pictures and split them."""
    return divide(
        request.data, request.tests, held_out=plan.held_out, seed=request.seed, group=request.group, multilabel=True,
        tell=bar.reading,
    )  # fmt: skip


def load(divided: Division, plan: Plan, bar: Bar) -> Task:
    """Read the pictures, resized to the plan's side."""
    return load_task(divided, side=plan.side, test=plan.test or None, tell=bar.reading)


def _announce(task: Task, plan: Plan, budget: Budget, say: Say) -> None:
    kind = "labels, several per picture" if task.multilabel else "classes"
    sizes = [len(one) for one in task.targets.values()]
    tests = f"; {sum(sizes):,} pictures in {len(sizes)} test folder{'s' * (len(sizes) > 1)}" if sizes else ""
    say(f"{budget.train:,} pictures to train on, {budget.held_out:,} held out, {len(task.classes)} {kind}{tests}")
    if warned := task.provenance.get("warnings"):
        say(f"warning: {warned}")
    for key, value in plan.model_dump().items():
        say(f"  {key} = {value}  # {Plan.model_fields[key].description}")
    total, limit = sum(budget.seconds(plan).values()), budget.limit
    over = "" if total <= limit else f"; this is the smallest plan, and it does not fit into {duration(limit)}"
    say(f"expected time: about {duration(total)}{over}")
    shifted = min(plan.shifted, budget.held_out)
    least = smallest_difference(shifted, run_to_run(budget.train, plan.pretrained))
    say(f"{shifted:,} held-out pictures under shifts: differences below {least:.1f} points cannot be detected")


def deliver(work: Work) -> Outcome:
    """Choose a candidate by the rule; write the model, ``outcome.json``, the model card and the report."""
    began = time.monotonic()
    scores = Scores(work.out / "scores", work.facts["score"]["sets"], work.names)
    s0 = run_to_run(len(work.task.train), work.plan.pretrained)
    decision, found = judge(scores, work.trained, s0)
    name, scale = decision.delivered, found["temperature"]["value"]
    limit = entropy_limit(scores.logits(name, "held_out") / scale, scores.labels("held_out"))
    net = work.load(name)
    divide_logits(head_of(net), scale)
    prepared = work.budget.prepared if work.budget else 0.0
    content = {
        "format": FORMAT, "meada": __version__, **decision.as_json(), "rule": RULE, "about": ABOUT,
        "run_to_run": s0, "abstain_entropy": limit,
        "trained_families": sorted(work.trained), "plan": work.plan.model_dump(), "stages": work.facts,
        "seconds": seconds(work.seconds(), prepared, time.monotonic() - began), "provenance": work.task.provenance,
        "classes": list(work.task.classes), "labels": "several" if work.task.multilabel else "one",
        "seed": work.request.seed, "environment": environment(), **found,
    }  # fmt: skip
    outcome = Outcome(work.out, content)
    about = work.about() | ({} if limit is None else {"abstain_entropy": repr(limit)})
    save_model(work.out / "model.safetensors", net, work.recipe(), work.task.classes, about)
    write_text(work.out / "MODEL_CARD.md", card(outcome))
    write_report(outcome, scores, training_views(work))
    write_json(work.out / "outcome.json", content)
    return outcome


def _read(path: Path) -> dict[str, Any]:
    held = read_json(path)
    if held.get("format") != FORMAT_OF_PLAN or not all(isinstance(held.get(key), dict) for key in KEYS):
        raise MeadaError(
            f"{path} must be a plan of this version of robustify, got a damaged one or one of another version: "
            "give another --out to start again"
        )
    return held


def _place(path: Any, name: str = "data") -> str:
    if not isinstance(path, str | Path | None):
        raise MeadaError(f"{name} must be a path, got {type(path).__name__}")
    return str(Path(path).resolve()) if path else ""


def _network(name: str) -> str:
    """Make the path of FILE.py:function absolute."""
    if not isinstance(name, str):
        raise MeadaError(f"network must be a name, FILE.py:function or module:function, got {type(name).__name__}")
    file, colon, function = name.rpartition(":")
    return f"{Path(file).resolve()}:{function}" if colon and file.endswith(".py") else name


def _taken(folder: Path) -> bool:
    ours = (".lock", "pictures", SUMS)  # left by a process that was killed before it wrote a plan
    return any(path.name not in ours and not DRAFT.fullmatch(path.name) for path in folder.iterdir())
