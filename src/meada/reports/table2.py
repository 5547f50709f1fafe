"""Table 2: PACS, one domain held out at a time, the paper's figures beside those of our records."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from meada.evaluation.selection import KNOWS
from meada.evaluation.statistics import summarise
from meada.reports.runs import Run
from meada.reports.text import SAME_BITS, machine

TARGETS = ("art_painting", "cartoon", "photo", "sketch")
COLUMNS = (*TARGETS, "average")
TITLES = ("Art", "Cartoon", "Photo", "Sketch", "Average")
STEPS = 45_000  # T of the supplement: a run of fewer is a scaled one

# name of the method -> (as the paper writes it, its row of Table 2)
WITH_LABELS = {
    "dsn": ("DSN", (61.1, 66.5, 83.3, 58.6, 67.4)),
    "l-cnn": ("L-CNN", (62.9, 67.0, 89.5, 57.5, 69.2)),
    "mldg": ("MLDG", (66.2, 66.9, 88.0, 59.0, 70.0)),
    "fusion": ("Fusion", (64.1, 66.8, 90.2, 60.1, 70.3)),
    "metareg": ("MetaReg", (69.8, 70.4, 91.1, 59.2, 72.6)),
    "epi-fcr": ("Epi-FCR", (64.7, 72.3, 86.1, 65.0, 72.0)),
}
WITHOUT_LABELS = {
    "agg": ("AGG", (63.4, 66.1, 88.5, 56.6, 68.7)),
    "hex": ("HEX", (66.8, 69.7, 87.9, 56.3, 70.2)),
    "par": ("PAR", (66.9, 67.1, 88.6, 62.6, 71.3)),
    "ada": ("ADA", (64.3, 69.8, 85.1, 60.4, 69.9)),
    "meada": ("ME-ADA", (67.1, 69.9, 88.6, 63.0, 72.2)),
}
GROUPS = {"with domain labels": WITH_LABELS, "without domain labels": WITHOUT_LABELS}


@dataclass(frozen=True)
class Row:
    """One line: a method, whose numbers they are, and a number a column with its text."""

    group: str
    method: str
    whose: str
    values: tuple[float | None, ...]
    texts: tuple[str, ...]


def on_pacs(runs: Iterable[Run]) -> list[Run]:
    """Those with one domain held out; others are passed over."""
    return [r for r in runs if r.record.get("data") == "pacs" and len(r.results("last")) == 1]


def target(run: Run) -> str:
    (name,) = run.results("last")
    return name


def form(run: Run) -> str:
    """``full``, ``scaled``, or what else a recipe of one's own is: no two are ever averaged."""
    recipe = run.settings
    whole = recipe.plan.total_steps >= STEPS and recipe.scaled == 1
    name = "full" if whole and "per_domain" not in recipe.data else "scaled"
    return f"{name}, {run.otherwise}" if run.otherwise else name


def rows(runs: Sequence[Run], rules: Sequence[str] = ("source_val", "oracle")) -> list[Row]:
    """The paper's line of each method, then ours: one for each form of run and rule of choice."""
    lines = []
    for group, methods in GROUPS.items():
        for method, (title, numbers) in methods.items():
            texts = tuple(f"{value:.1f}" for value in numbers)
            lines.append(Row(group, title, "paper", numbers, texts))
            lines += _ours(group, title, [run for run in runs if run.method == method], rules)
    return lines


def markdown(runs: Sequence[Run], rules: Sequence[str] = ("source_val", "oracle")) -> str:
    """The table with its notes; the best of each group, and of each kind of line, in bold."""
    runs = on_pacs(runs)
    lines = rows(runs, rules)
    out = ["# Table 2: PACS, accuracy (%) on the domain held out", ""]
    for group in GROUPS:
        out += [f"**{group.capitalize()}**", "", f"| | | {' | '.join(TITLES)} |"]
        out += ["|---|---|" + "---:|" * len(TITLES)]
        for line in (line for line in lines if line.group == group):
            cells = [
                f"**{text}**" if is_best else text for text, is_best in zip(line.texts, best(line, lines), strict=True)
            ]
            out.append(f"| {line.method} | {line.whose} | {' | '.join(cells)} |")
        out.append("")
    return "\n".join([*out, *(f"- {note}" for note in notes(runs, rules)), "", *_each(runs)])


def best(line: Row, lines: Sequence[Row]) -> tuple[bool, ...]:
    """For each column, whether none of its group and kind is higher; as printed, so ties share."""
    rivals = [x for x in lines if (x.group, x.whose) == (line.group, line.whose)]
    return tuple(
        value is not None and all(round(value, 1) >= round(x.values[i] or 0, 1) for x in rivals)
        for i, value in enumerate(line.values)
    )


def notes(runs: Sequence[Run], rules: Sequence[str]) -> Iterator[str]:
    """How each number and each hyper-parameter was come by."""
    yield (
        "paper: Zhao et al. (2020), Table 2; it names the recommended validation split, and no "
        "rule by which a checkpoint was chosen."
    )
    if not runs:
        yield "ours: no records."
        return
    yield "ours: mean ± sample standard deviation over n seeds; the average needs all four targets."
    for rule in rules:
        yield f"ours, {rule}: {KNOWS[rule]}."
    yield (
        "hyper-parameters: the supplement's, alike for all targets but beta, which it gives for "
        f"each target: that is oracle knowledge of the domain held out. Here: {_betas(runs)}."
    )
    yield from _scales(runs)
    yield from _weights(runs)
    yield from _provenance(runs)


def _ours(group: str, title: str, runs: Sequence[Run], rules: Sequence[str]) -> Iterator[Row]:
    for kind in sorted({form(run) for run in runs}):
        of_form = [run for run in runs if form(run) == kind]
        for rule in rules:
            values = [_mean(of_form, name, rule) for name in TARGETS]
            known = [mean for mean, _ in values if mean is not None]
            whole = len(known) == len(TARGETS)
            average = sum(known) / len(known) if whole else None
            means = (*(mean for mean, _ in values), average)
            texts = (*(text for _, text in values), f"{average:.1f}" if average else "–")
            yield Row(group, title, f"ours, {kind}, {rule}", means, texts)


def _mean(runs: Sequence[Run], name: str, rule: str) -> tuple[float | None, str]:
    results = [run.results(rule).get(name) for run in runs]
    accuracies = [float(scores["accuracy"]) for scores in results if scores]
    if not accuracies:
        return None, "–"
    summary = summarise(accuracies)
    spread = "" if summary.std is None else f" ± {summary.std:.1f}"
    return summary.mean, f"{summary.mean:.1f}{spread} (n={summary.n})"


def _each(runs: Sequence[Run]) -> Iterator[str]:
    """Every run: what it learnt of its sources, what it cost, and the command that repeats it."""
    if not runs:
        return
    yield from (
        "| command | held-out pictures of the sources, last step (%) | minutes | on |",
        "|---|---:|---:|---|",
    )
    for run in runs:
        record = run.record
        cells = (
            f"`{run.command}`",
            f"{record['source']['last']['accuracy']:.1f}",
            f"{sum(record['seconds'].values()) / 60:.0f}",
            machine(record["environment"]),
        )
        yield f"| {' | '.join(cells)} |"
    yield from ("", SAME_BITS)


def _betas(runs: Sequence[Run]) -> str:
    betas = {(target(r), r.settings.method["beta"]) for r in runs if r.method == "meada"}
    told = [f"beta {beta:g} for {name}" for name, beta in sorted(betas)]
    return ", ".join(told) or "no run with beta"


def _scales(runs: Sequence[Run]) -> Iterator[str]:
    lengths = defaultdict(set)
    for run in runs:
        each = run.settings.data.get("per_domain")
        size = f", {each} pictures of each source" if each else ""
        lengths[form(run)].add(f"{run.record['steps']:,} steps{size}")
    for kind, told in sorted(lengths.items()):
        yield f"ours, {kind}: {'; '.join(sorted(told))} (the paper: {STEPS:,} steps)."


def _weights(runs: Sequence[Run]) -> Iterator[str]:
    """What of the network did not come from ImageNet."""
    for network in sorted({str(run.record["network"]) for run in runs}):
        given = [run.record.get("weights") or {} for run in runs if run.record["network"] == network]
        files = sorted({str(account.get("file", "no file")) for account in given})
        left = sorted({name for account in given for name in account.get("left_at_random", [])})
        rest = f"left at random: {', '.join(left)}" if left else "nothing of the file left at random"
        if files == ["no file"]:
            rest = "all of it began at random; the paper's was pretrained on ImageNet"
        yield f"network: {network}, weights from {', '.join(files)}; {rest}."


def _provenance(runs: Sequence[Run]) -> Iterator[str]:
    told = {f"{name}: {what}" for run in runs for name, what in run.record.get("provenance", {}).items()}
    for line in sorted(told):
        yield f"data, {line}."
