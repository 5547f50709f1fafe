"""Table 2: PACS with one domain held out, the paper's numbers next to those of our records."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from statistics import mean
from typing import TYPE_CHECKING, NamedTuple

from meada.errors import MeadaError
from meada.evaluation.selection import RULE_TEXTS
from meada.reports.page.blocks import Block, Cell, Chart, Page, Section, Table, Text
from meada.reports.page.cost import bill, records, spread
from meada.reports.page.groups import Group, colours, once_per_seed, title
from meada.reports.page.paper import BARS, PAPER, points, printed
from meada.reports.runs import Run
from meada.runs.recipe import load_recipe

if TYPE_CHECKING:
    from meada.reproduce.cost import Costs

TARGETS = tuple(PAPER["pacs"]["domains"][:4])
COLUMNS = tuple(PAPER["pacs"]["domains"])
RULES = ("last", "source_val", "oracle")
EARLY = "†"


class Row(NamedTuple):
    """A row: method, source (paper or ours), and a number with its text for each column."""

    method: str
    whose: str
    values: tuple[float | None, ...]
    texts: tuple[str, ...]


def table2(runs: Iterable[Run]) -> Page:
    """The best of the paper's numbers in bold."""
    pacs = [run for run in runs if run.record.get("data") == "pacs" and len(run.results("last")) == 1]
    runs, repeats = once_per_seed(pacs)
    sections = []
    for name, labelled in (("with domain labels", True), ("without domain labels", False)):
        lines = rows(runs, labelled)
        cells = []
        for line in lines:
            bold = zip(line.texts, best(line, lines), strict=True)
            mark = "**" if line.whose == "paper" else ""
            cells.append((line.method, line.whose, *(f"{mark}{text}{mark}" if top else text for text, top in bold)))
        table = Table("Accuracy (%) on the domain held out", ("method", "whose", *COLUMNS), tuple(cells))
        sections.append(Section(f"Methods {name}", (table,)))
    how = Section("How these numbers were made", tuple(map(Text, [*notes(runs), *repeats])))
    if not runs:
        return Page("Table 2: PACS", (*sections, how))
    return Page("Table 2: PACS", (_figure(runs), *sections, *_scaled(runs), bill(_groups(runs)), how, records(runs)))


def _groups(runs: Sequence[Run]) -> list[Group]:
    """A group per method and form, in the paper's order."""
    found: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in runs:
        found[run.method, form(run)].append(run)
    known = [*PAPER["pacs"]["mean"]]
    ordered = sorted(found, key=lambda key: (known.index(key[0]) if key[0] in known else len(known), *key))
    shades = colours([method for method, _ in ordered])
    return [
        Group(f"{title(key[0])}, {key[1]}", tuple(found[key]), TARGETS, colour)
        for key, colour in zip(ordered, shades, strict=True)
    ]


def _on(group: Group, target: str) -> Group:
    """Runs of the group with this target domain."""
    runs = (run for run in group.runs if target in run.results("last"))
    return replace(group, runs=tuple(runs), domains=(target,))


def _figure(runs: Sequence[Run], rule: str = "last") -> Section:
    """The table as a chart: a panel per target with runs, a row per method."""
    targets = [t for t in TARGETS if any(t in run.results("last") for run in runs)]
    series = []
    for group in _groups(runs):
        papers = [printed("pacs", "", group.method, t) for t in targets]
        places = [(_on(group, t), t) for t in targets]
        series.append(points(group.label, rule, places, papers, counted=True, colour=group.colour))
    about = f"Accuracy on the domain held out, ours and the paper's full runs; ours: {RULE_TEXTS[rule]}"
    shown = tuple(one for one in series if any(y is not None for y in one.y))
    chart = Chart("panels", about, shown, "domain", "accuracy (%)", tuple(targets), name="table2")
    return Section("Ours and the paper's", (chart, Text(BARS)))


def _scaled(runs: Sequence[Run]) -> Iterator[Section]:
    """Limits of scaled-down runs, and the estimated cost of full ones."""
    short = [run for run in runs if form(run) != "full"]
    if not short:
        return
    steps = sorted({run.record["steps"] / PAPER["pacs"]["steps"] for run in short})
    share = f"{100 * steps[0]:.1f} %" if len(steps) == 1 else f"{100 * steps[0]:.1f} to {100 * steps[-1]:.1f} %"
    single = all(len(_on(group, t).runs) <= 1 for t in TARGETS for group in _groups(short))
    blocks: list[Block] = [
        Text("It shows that every method trains and is scored by the paper's protocol: domains, splits, network, "
             "settings, choice of the checkpoint. It shows differences between methods at this length, as far as the "
             "seeds go" + (": one seed of each says something of these models, and nothing of the methods." if single
                           else "; where n = 1, of these models only.")),
        Text(f"It does not show the paper's accuracies, nor that they can be reached: runs have {share} of the paper's "
             f"{PAPER['pacs']['steps']:,} steps, fewer pictures and, where the notes below say so, randomly "
             "initialised layers. No test against the paper is made, and no cell is called reproduced."),
    ]  # fmt: skip
    rows: list[tuple[Cell, ...]] = []
    hours_of: dict[str, list[float]] = defaultdict(list)
    for run in short:
        if found := full_run(run):
            costs, hours = found
            rows.append((title(run.method), *run.results("last"), costs.step, 1000 * costs.climb or None, hours))
            hours_of[run.method].append(hours)
    if rows:
        every = len(TARGETS) * sum(map(mean, hours_of.values()))
        columns = ("method", "held out", "s per step", "ms per ascent step and picture", "core-hours of a full run")
        blocks += [
            Table("A full run, from what the scaled one took", columns, tuple(rows), {"s per step": 2}),
            Text("Worked out from these records on their machines: time of a step, of an ascent step and of scoring a "
                 "picture, times their number in the full recipe with all published pictures. "
                 f"The {len(hours_of)} methods on all four targets: about {every:,.0f} core-hours a seed."),
        ]  # fmt: skip
    yield Section("Limits of the scaled-down runs", tuple(blocks))


def full_run(run: Run) -> "tuple[Costs, float] | None":
    """Costs of a run, and core-hours of the recipe without ``-small``; None if there is no such recipe."""
    from meada.reproduce.cost import Costs, run_seconds  # other pages need not load it

    ours, seconds = run.settings, run.record["seconds"]
    try:
        full = load_recipe(ours.name.removesuffix("-small"), seed=ours.seed)
    except MeadaError:
        return None
    if ours.plan.batch_size != full.plan.batch_size:
        return None
    climbed = run_seconds(ours, Costs(step=0.0, climb=1.0, look=0.0))
    looked = run_seconds(ours, Costs(step=0.0, climb=0.0, look=1.0))
    costs = Costs(
        step=seconds["minimise"] / max(run.record["steps"], 1),
        climb=seconds.get("maximise", 0.0) / climbed if climbed else 0.0,
        look=seconds.get("evaluate", 0.0) / looked if looked else 0.0,
    )
    whole = run_seconds(full, costs)
    return None if whole is None else (costs, whole * int(run.record["environment"]["threads"]) / 3600)


def rows(runs: Sequence[Run], labelled: bool, rules: Sequence[str] = RULES) -> list[Row]:
    """The paper's row of each method, then ours: one for each form of run and selection rule."""
    groups, lines = _groups(runs), []
    for method, numbers in PAPER["pacs"]["mean"].items():
        if (method in PAPER["pacs"]["labelled"]) == labelled:
            lines.append(Row(title(method), "paper", tuple(numbers), tuple(f"{value:.1f}" for value in numbers)))
            lines += [_ours(group, rule) for group in groups if group.method == method for rule in rules]
    return lines


def before_rounds(run: Run, rule: str) -> bool:
    """Whether the rule chose a step before the method had made any images: a network of plain training."""
    rounds = [line["step"] for line in run.log if "round" in line and "ce" in line]
    return bool(rounds) and run.record.get("selected", {}).get(rule, {}).get("step", rounds[0] + 1) <= rounds[0]


def best(line: Row, lines: Sequence[Row]) -> tuple[bool, ...]:
    """For each column, whether it is the highest of its kind; rounded as printed, so ties share."""
    rivals = [x for x in lines if x.whose == line.whose]
    return tuple(
        value is not None and all(round(value, 1) >= round(x.values[i] or 0, 1) for x in rivals)
        for i, value in enumerate(line.values)
    )


def form(run: Run) -> str:
    """``full`` or ``scaled``, and the settings that differ; different forms are never averaged."""
    recipe = run.settings
    whole = recipe.plan.total_steps >= PAPER["pacs"]["steps"] and recipe.scaled == 1
    name = "full" if whole and "per_domain" not in recipe.data else "scaled"
    return f"{name}, {run.differences}" if run.differences else name


def _ours(group: Group, rule: str) -> Row:
    found = [_on(group, target).summary(rule, target) for target in TARGETS]
    average = mean(s.mean for s in found if s) if all(found) else None
    early = [any(before_rounds(run, rule) for run in _on(group, target).runs) for target in TARGETS]
    texts = [f"{spread(s, 1)} (n={s.n}){EARLY * e}" if s else "–" for s, e in zip(found, early, strict=True)]
    values = (*(s.mean if s else None for s in found), average)
    whose = f"ours, {form(group.runs[0])}, {rule}"
    return Row(title(group.method), whose, values, (*texts, f"{average:.1f}" if average else "–"))


def notes(runs: Sequence[Run]) -> Iterator[str]:
    """Notes on the source of each number and hyper-parameter."""
    yield "Paper: Table 2; it uses the recommended validation split and names no rule by which a checkpoint was chosen."
    if not runs:
        yield "Ours: no records."
        return
    yield "Ours: mean ± standard deviation over n seeds; the average needs all four targets."
    for rule in RULES:
        yield f"Ours, {rule}: {RULE_TEXTS[rule]}."
    if any(before_rounds(run, rule) for run in runs for rule in RULES):
        yield f"{EARLY}: chosen before the first maximisation round, so a network of plain training (AGG)."
    betas = sorted({(*r.results("last"), r.settings.method["beta"]) for r in runs if r.method == "meada"})
    listed = ", ".join(f"beta {beta:g} for {name}" for name, beta in betas) or "no run with beta"
    yield (
        "Hyper-parameters: the supplement's, the same for all targets except beta, which it gives for each target: "
        f"that uses knowledge of the test domain. Here: {listed}."
    )
    lengths = defaultdict(set)
    for run in runs:
        each = run.settings.data.get("per_domain")
        lengths[form(run)].add(f"{run.record['steps']:,} steps" + (f", {each} pictures of each source" if each else ""))
    for kind, found in sorted(lengths.items()):
        yield f"Ours, {kind}: {'; '.join(sorted(found))} (the paper: {PAPER['pacs']['steps']:,} steps)."
    yield from _weights(runs)
    data = {f"{name}: {what}" for run in runs for name, what in run.record.get("provenance", {}).items()}
    yield from (f"Data, {line}." for line in sorted(data))


def _weights(runs: Sequence[Run]) -> Iterator[str]:
    """Weights that were not pretrained on ImageNet."""
    for network in sorted({str(run.record["network"]) for run in runs}):
        given = [run.record.get("weights") or {} for run in runs if run.record["network"] == network]
        files = sorted({str(account.get("file", "no file")) for account in given})
        left = sorted({name for account in given for name in account.get("left_at_random", [])})
        rest = f"randomly initialised: {', '.join(left)}" if left else "no layer randomly initialised"
        if files == ["no file"]:
            rest = "all layers randomly initialised; the paper's was pretrained on ImageNet"
        yield f"Network: {network}, weights from {', '.join(files)}; {rest}."
