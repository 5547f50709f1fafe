"""The report page of ``robustify``: whether the delivered model is better, then the details."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor
from torch.nn.functional import one_hot

from meada.errors import some
from meada.maximise import tilted_views
from meada.objective import Objective
from meada.pool import as_float
from meada.reports.page import write
from meada.reports.page.blocks import Block, Cell, Chart, Gallery, Page, Picture, Section, Series, Table, Text
from meada.reports.page.robustness import reliability_curve
from meada.reports.page.training import png
from meada.robustify.labels import as_classes, names_of, one_of_each
from meada.robustify.outcome import Outcome
from meada.robustify.plan import duration
from meada.robustify.rule import MAX_CLEAN_LOSS, NOT_DELIVERABLE
from meada.robustify.scoring import Scores
from meada.robustify.stages import Work
from meada.robustify.training import space_of
from meada.types import Images

SHOWN = 8  # pictures in the gallery
GROUPS = {"held_out": "held out", "corruptions": "corruptions", "validation_shifts": "shifts"}  # as in the table
MOST_CLASSES = 20  # maximum for a confusion matrix; for more, the most frequent confusions are listed
MOST_ROWS = 30  # maximum of classes in a table, half of them from each end


def training_views(work: Work) -> Gallery:
    """A few training pictures, each with a view of the kind that hardened was trained on.

    Views are chosen by the network that hardened started from.
    """
    train, plan = work.task.train, work.plan
    index = one_of_each(train.labels if train.labels.ndim == 1 else train.labels.argmax(-1))[:SHOWN]
    x, y = as_float(train.images[index]), train.labels[index]
    net = work.load("probe") if plan.pretrained else work.load("plain")
    space = space_of(work.facts["families"]["colour"])
    views = tilted_views(
        net, x, y, space, Objective(beta=1.0, gamma=0.0), k=plan.views, hardness=plan.hardness,
        seed=work.request.seed, step=0, rows=index.numpy(),
    )  # fmt: skip
    how = "a random change"
    if plan.views > 1 and plan.hardness > 0:
        hard = f"more often one that the network finds hard (hardness {plan.hardness:g})"
        how = f"one of {plan.views} random changes, {hard}"
    about = f"The hardened candidate is trained on each picture and on a view of it ({how}), drawn again at every step."
    return gallery(x, views, [names_of(label, work.task.classes) for label in y], about)


def gallery(pictures: Images, views: Images, names: Sequence[str], about: str) -> Gallery:
    columns = tuple(Picture((png(x), png(v)), (n, n)) for x, v, n in zip(pictures, views, names, strict=True))
    return Gallery("Training pictures and a view of each", ("picture", "view"), columns, about)


def write_report(outcome: Outcome, scores: Scores, views: Gallery) -> None:
    """Write ``report.html``, one self-contained file."""
    page = Page(f"Delivered: {outcome.delivered}", tuple(sections(outcome, scores, views)))
    write(page, out=outcome.out / "report.html")


def sections(outcome: Outcome, scores: Scores, views: Gallery) -> Iterator[Section]:
    held = outcome.content
    yield Section("Is it better?", (Text(answer(outcome)), _picture(outcome), Text(held["about"], "warning")))
    yield Section("Candidates", tuple(_candidates(outcome)))
    yield Section("Hard views", (views,))
    yield corruptions(outcome)
    yield classes(outcome, scores)
    if scores.labels("held_out").ndim == 1:
        yield confusion(outcome, scores)
    yield calibration(outcome, scores)
    yield Section("Time", (_time(held["seconds"]),))


def answer(outcome: Outcome) -> str:
    """One or two sentences: whether the delivered model is better, by how much and at what cost."""
    held, name, total = outcome.content, outcome.delivered, outcome.content["seconds"]["total"]
    if name == "plain":
        verdict = outcome.verdict.replace("Delivered: plain.", "No: plain fine-tuning is delivered.")
        return f"{verdict}{_tests(outcome)} The comparison took {duration(total)}.{_own(held)}"
    of = [held["candidates"][one] for one in (name, "plain")]
    found = {
        "under corruptions": (*(one["corruptions"]["mean"] for one in of), held["differences"][name]["corruptions"]),
        "on unchanged pictures": (*(one["held_out"]["accuracy"] for one in of), held["differences"][name]["held_out"]),
    }
    (where, first), (elsewhere, second) = sorted(found.items(), key=lambda one: -one[1][2]["mean"])
    but = "" if second[2]["mean"] > -MAX_CLEAN_LOSS else f" {where}, not {elsewhere}"
    return (
        f"Yes{but}: {where}, the accuracy of {name} on held-out pictures is {first[0]:.1f} %, that of plain "
        f"fine-tuning {first[1]:.1f} % ({_interval(first[2])}); {elsewhere}, it is {second[0]:.1f} % against "
        f"{second[1]:.1f} % ({_interval(second[2])}).{_tests(outcome)} The comparison took {duration(total)}; the "
        f"model has the same size and speed as plain.{_own(held)}"
    )


def _tests(outcome: Outcome) -> str:
    """The accuracy of both models of :func:`pair` on every test folder."""
    plain, other = pair(outcome)
    tests = {name: outcome.content["candidates"][name]["tests"] for name in (plain, other)}
    each = [f"{one['accuracy']:.1f} % and {tests[plain][test]['accuracy']:.1f} % on {test}"
            for test, one in tests[other].items()]  # fmt: skip
    where = "On test pictures, which were not used to choose"
    return f" {where}, the accuracy of {other} and plain is {', '.join(each)}." if each else ""


def _own(held: dict[str, Any]) -> str:
    """The accuracy of the model given as ``--model``."""
    one = held["candidates"].get("own")
    if one is None:
        return ""
    return (
        f" The accuracy of your own model is {one['corruptions']['mean']:.1f} % under corruptions and "
        f"{one['held_out']['accuracy']:.1f} % on unchanged pictures, some of which it may have been trained on."
    )


def _interval(found: dict[str, float]) -> str:
    """
    >>> _interval({"mean": 8.25, "low": 6.0, "high": 10.5})
    '+8.2 points, 95 % interval +6.0 to +10.5'
    """
    return f"{found['mean']:+.1f} points, 95 % interval {found['low']:+.1f} to {found['high']:+.1f}"


def _picture(outcome: Outcome) -> Block:
    """Accuracy of both models of :func:`pair` on every group of pictures."""
    head, *lines = outcome.rows()
    shown = [line for line in lines if line[0].split()[0] in pair(outcome)]
    bars = {line[0].removesuffix(" *"): map(float, line[1:]) for line in shown}
    return _bars("Accuracy (%)", "pictures", head[1:], bars)


def _bars(title: str, x: str, places: Iterable[str], bars: Mapping[str, Iterable[float]]) -> Chart:
    series = tuple(Series(name, tuple(one), colour=k) for k, (name, one) in enumerate(bars.items()))
    return Chart("bars", title, series, x, "accuracy (%)", tuple(places), y_range=(0, 100), small=True)


def _candidates(outcome: Outcome) -> Iterator[Block]:
    held = outcome.content
    head, *lines = outcome.rows()
    shown: list[tuple[Cell, ...]] = [(name, *map(float, values)) for name, *values in lines]
    yield Table("Accuracy (%); the delivered model is marked with *", head, tuple(shown))
    yield Text(f"Pictures: {outcome.counts()}. Rule: {held['rule']}")
    rows = tuple(
        (name, title, found["mean"], found["low"], found["high"])
        for name, one in held["differences"].items()
        for title, found in [
            *((title, one[group]) for group, title in GROUPS.items() if group in one),
            *((f"test: {test}", found) for test, found in one["tests"].items()),
        ]
    )
    columns = ("candidate", "pictures", "difference", "low", "high")
    yield Table("Difference from plain (points), with 95 % intervals over pictures", columns, rows)


def _time(seconds: dict[str, float]) -> Table:
    total = seconds["total"] or 1.0
    rows = tuple((name, value, 100 * value / total) for name, value in seconds.items())
    return Table("Time spent", ("stage", "seconds", "share (%)"), rows)


def corruptions(outcome: Outcome) -> Section:
    """Accuracy under each corruption and shift: a chart of two candidates, a table of all."""
    every = outcome.by_change()
    titles = tuple(name.replace("_", " ") for name in every["plain"])
    rows = tuple(zip(titles, *(one.values() for one in every.values()), strict=True))
    bars = {name: every[name].values() for name in pair(outcome)}
    chart = _bars("Accuracy (%) by corruption and shift", "change", titles, bars)
    return Section("Corruptions and shifts", (chart, Table("Accuracy (%)", ("change", *every), rows)))


def classes(outcome: Outcome, scores: Scores) -> Section:
    """Accuracy of each class for plain and for the delivered model; the largest loss first."""
    if outcome.delivered == "plain":
        return Section("Classes", (Text("The delivered model is plain fine-tuning, so no class changes."),))
    clean, changed = per_class(outcome, scores, ["held_out"]), per_class(outcome, scores, scores.group("corruption/"))
    by_change, half = sorted(changed, key=lambda one: one[3] - one[2]), MOST_ROWS // 2
    unchanged = {name: shares for name, _, *shares in clean}
    rows: list[tuple[Cell, ...]] = []
    for name, n, before, after in by_change if len(by_change) <= MOST_ROWS else [*by_change[:half], *by_change[-half:]]:
        rows.append((name, n, before, after, after - before, *unchanged.get(name, (None, None))))
    worse = [one[0] for one in by_change if one[3] < one[2]]
    said = f"Under corruptions, none of the {len(changed)} classes has a lower accuracy than with plain fine-tuning."
    if worse:
        lower = f"{len(worse)} of {len(changed)} classes is lower than with plain fine-tuning: {some(worse, 8)}."
        said = f"Under corruptions, the accuracy of {lower}"
    columns = ("class", "pictures", "plain", outcome.delivered, "change", "unchanged: plain", "unchanged: delivered")
    left = f" The table shows {len(rows)} of {len(changed)} classes." if len(rows) < len(changed) else ""
    title = "Accuracy (%) of each class under corruptions, the largest loss first"
    return Section("Classes", (Text(said + left), Table(title, columns, tuple(rows))))


def per_class(outcome: Outcome, scores: Scores, names: Sequence[str]) -> list[tuple[str, int, float, float]]:
    """Class, number of pictures (every corruption counts), accuracy (%) of plain and of the delivered model."""
    labels, titles = scores.labels(*names), outcome.content["classes"]
    several, k = labels.ndim == 2, len(titles)
    truth = labels > 0 if several else one_hot(labels, k) > 0
    both = [scores.logits(candidate, *names) for candidate in ("plain", outcome.delivered)]
    said = [logits > 0 if several else one_hot(logits.argmax(-1), k) > 0 for logits in both]
    found = []
    for title, mine, before, after in zip(titles, truth.T, *(one.T for one in said), strict=True):
        if mine.any():
            recognised = [100 * float(one[mine].double().mean()) for one in (before, after)]
            found.append((title, int(mine.sum()), recognised[0], recognised[1]))
    return found


def confusion(outcome: Outcome, scores: Scores) -> Section:
    """Confusion of classes under corruptions, for both models of :func:`pair`."""
    titles = outcome.content["classes"]
    tables = {name: counts(scores, name, len(titles)) for name in pair(outcome)}
    shares = {name: 100 * table / table.sum(1, keepdims=True).clip(1) for name, table in tables.items()}
    if len(titles) <= MOST_CLASSES:
        about = Text("Each row is a true class: the share (%) of its pictures with each predicted class.")
        charts = (_matrix(name, share, titles) for name, share in shares.items())
        return Section("Confusion under corruptions", (about, *charts))
    rows = []
    for name, share in shares.items():
        np.fill_diagonal(share, 0)
        worst = np.argsort(share, axis=None)[::-1][:10]
        rows += [(name, titles[i // len(titles)], titles[i % len(titles)], float(share.flat[i])) for i in worst]
    columns = ("model", "true class", "predicted class", "share (%)")
    return Section("Confusion under corruptions", (Table("Most frequent confusions", columns, tuple(rows)),))


def counts(scores: Scores, candidate: str, classes: int) -> np.ndarray:
    """Pictures of each true class (rows) by predicted class, over all corruptions."""
    names = scores.group("corruption/")
    pairs = scores.labels(*names) * classes + scores.logits(candidate, *names).argmax(-1)
    return pairs.bincount(minlength=classes**2).view(classes, classes).double().numpy()


def _matrix(name: str, share: np.ndarray, titles: Sequence[str]) -> Chart:
    series = tuple(Series(title, tuple(map(float, row))) for title, row in zip(titles, share, strict=True))
    title = f"{name}: share of the true class (%)"
    return Chart("heat", title, series, "predicted class", "true class", tuple(titles), y_range=(0, 100))


def calibration(outcome: Outcome, scores: Scores) -> Section:
    """Reliability diagrams of both models of :func:`pair`, of the delivered one with its temperature."""
    groups = {"unchanged pictures": ["held_out"], "corruptions": scores.group("corruption/")}
    scale = outcome.content["temperature"]["value"]
    blocks: list[Block] = [
        Text("Of predictions with 80 % confidence, 80 % should be correct (diagonal); below it is overconfidence.")
    ]
    for title, names in groups.items():
        curves = []
        for colour, name in enumerate(pair(outcome)):
            logits = scores.logits(name, *names) / (scale if name == outcome.delivered else 1)
            curves.append(reliability(name, logits, scores.labels(*names), colour))
        series = tuple(curves)
        blocks.append(Chart("lines", f"Reliability, {title}", series, "confidence (%)", "accuracy (%)",
                            y_range=(0, 100), diagonal=True, small=True))  # fmt: skip
    blocks += [Text(outcome.about_temperature()), _scores(outcome)]
    return Section("Calibration", tuple(blocks))


def reliability(name: str, logits: Tensor, labels: Tensor, colour: int) -> Series:
    """
    >>> import torch
    >>> one = reliability("m", torch.tensor([[0.0, 0.0], [9.0, 0.0]]), torch.tensor([1, 0]), 0)
    >>> one.y, [round(x) for x in one.x]
    ((0.0, 100.0), [50, 100])
    """
    logits, labels = as_classes(logits, labels)
    confidence, guess = logits.double().softmax(-1).max(-1)
    return reliability_curve(name, confidence, guess == labels, colour)


def _scores(outcome: Outcome) -> Table:
    every, scale = outcome.content["candidates"], outcome.content["temperature"]
    if scale["value"] != 1:
        every = {f"{outcome.delivered}, before temperature scaling": scale["unscaled"], **every}
    groups = list(GROUPS.items())[:2]
    rows = tuple((name, title, one[k]["ece"], one[k]["nll"]) for name, one in every.items() for k, title in groups)
    about, columns = "Calibration; delivered with its temperature", ("candidate", "pictures", "ECE", "NLL (nats)")
    return Table(about, columns, rows, {"ECE": 3, "NLL (nats)": 3})


def pair(outcome: Outcome) -> tuple[str, str]:
    """Plain and the delivered model; if plain is delivered, the best other candidate by the rule."""
    if outcome.delivered != "plain":
        return "plain", outcome.delivered
    held = outcome.content
    others = [name for name in held["candidates"] if name not in ("plain", *NOT_DELIVERABLE)]
    return "plain", max(others, key=lambda name: (name in held["eligible"], held["gains"][name]["mean"]))
