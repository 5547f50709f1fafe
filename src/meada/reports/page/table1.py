"""Table 1 and Figure 1: digits, with the differences between methods and the paper's order of them."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from itertools import combinations, pairwise

from meada.errors import MeadaError
from meada.evaluation.selection import RULE_TEXTS, RULES
from meada.evaluation.statistics import LEVEL, Verdict, over_seeds, page_trend, verdicts
from meada.reports.page.blocks import Cell, Page, Section, Table, Text
from meada.reports.page.cost import bill, equal_time, records, rule_texts, spread
from meada.reports.page.groups import Experiment, Group, experiment, once_per_seed
from meada.reports.page.paper import PAPER, SELECTION_KEYS, compare_with_paper, paper_of, rounds_section
from meada.reports.page.robustness import calibration
from meada.reports.page.sensitivity import of_study, sensitivity
from meada.reports.runs import Run
from meada.runs.recipe import load_recipe

PAIRS = (
    ("ada", "erm"), ("meada", "erm"), ("meada", "ada"), ("meada", "par"), ("par", "erm"), ("meada-bnn", "erm"),
    ("meada-bnn", "meada"), ("meada", "noise"), ("noise", "erm"), ("ada", "noise"),
)  # fmt: skip
ORDER = ("meada", "ada", "erm")  # best first, as Table 1 has them on
ORDERED = ("svhn", "mnist_m")


def table1(runs: Sequence[Run], command: str) -> Page:
    """Table 1 from finished runs on digits; other runs are skipped."""
    digits = [run for run in runs if run.record.get("data", "digits") == "digits" and "svhn" in run.results("last")]
    runs, repeats = once_per_seed(digits)
    if not runs:
        raise MeadaError("Table 1 must have runs on digits, got none")
    domains = [d for d in PAPER["digits"]["domains"] if all(d in run.results("last") for run in runs)]
    chosen = _experiment([run for run in runs if _stands(run)], domains)
    varied = [run for run in runs if shipped(run, {"plan.rounds"})]
    kept = {(run.method, run.seed) for run in chosen.runs() if run.method in PAPER["digits"]["mean"]}
    again = [run for run in runs if (run.method, run.seed) in kept and not shipped(run)]
    looked = [run for run in again if shipped(run, SELECTION_KEYS)]
    study = of_study(runs)
    sections = [
        *_chosen(chosen, looked),
        rounds_section(_experiment(varied, domains), "last"),
        sensitivity(study, domains) if study else None,
        records(used := [r for r in runs if r in (*chosen.runs(), *varied, *looked, *study)]),
    ]
    names = ", ".join(f"`{run.name}`" for run in runs if run not in used)
    left = [*repeats, *([f"Neither a shipped recipe nor part of the study: {names}."] if names else [])]
    if left:
        sections.append(Section("Left out", tuple(map(Text, left))))
    absent = ", ".join(d for d in PAPER["digits"]["domains"] if d not in domains)
    missing = f" {absent}: not tested in every run." if absent else ""
    about = Text(
        f"Made of {len(runs)} records by `meada report`; run with `{command}`. Means are over {', '.join(domains)}, "
        f"within a run first and then over runs, ours and the paper's alike.{missing}"
    )
    return Page("Digits", (Section("About", (about,)), *(section for section in sections if section)))


def _experiment(runs: Sequence[Run], domains: Sequence[str]) -> Experiment:
    return experiment(("digits", str(runs[0].record.get("network", "")) if runs else "", "1", *domains), runs)


def shipped(run: Run, but: Set[str] = frozenset()) -> bool:
    """Whether its recipe is a shipped full-length recipe for digits, ignoring these settings."""
    whole = run.settings.name.startswith("digits/") and run.settings.scaled == 1
    return whole and run.changed is not None and run.changed.keys() <= but


def _stands(run: Run) -> bool:
    """Whether a run stands in the table: a shipped recipe's, or that of a method which the paper does not have,

    trained for longer than its recipe says: as long as a dearer one takes.
    """
    if run.method in PAPER["digits"]["mean"] or not shipped(run, {"plan.total_steps", "precision", *SELECTION_KEYS}):
        return shipped(run)
    return run.settings.plan.total_steps >= load_recipe(run.settings.name).plan.total_steps


def _chosen(experiment: Experiment, looked: Sequence[Run]) -> list[Section | None]:
    if not (groups := _named(experiment.groups)):
        return []
    return [
        _table(experiment),
        compare_with_paper(experiment, ("last", "oracle")),
        _oracle_frequency(experiment, groups, looked) if looked else None,
        differences(groups, experiment.columns, pairs_of(groups)),
        order(groups),
        equal_time(experiment),
        bill(experiment.groups),
        calibration(experiment, "last"),
    ]


def _named(groups: Sequence[Group]) -> dict[str, Group]:
    """Group name: the recipe's name, or the label if the name is taken."""
    named: dict[str, Group] = {}
    for group in sorted(groups, key=lambda g: not shipped(g.runs[0])):
        name = group.runs[0].settings.name.rpartition("/")[2]
        named[group.label if name in named else name] = group
    return {name: group for of in groups for name, group in named.items() if group is of}


def _table(experiment: Experiment) -> Section:
    rows: list[tuple[Cell, ...]] = []
    for group in experiment.groups:
        papers = [paper_of(experiment, group, d) for d in experiment.columns]
        if any(papers):
            rows.append((group.label, "the paper (oracle)", *(f"{p.mean:.2f}" if p else None for p in papers), 10))
        for rule in filter(group.scored, RULES):
            means = (spread(group.mean(rule, d)) for d in experiment.columns)
            rows.append((group.label, rule, *means, len(group.scored(rule))))
    known = rule_texts(row[1] for row in rows)
    columns = ("method", "checkpoint", *experiment.columns, "n")
    mixed = ", ".join(group.label for group in experiment.groups if len(group.crafted) > 1)
    lists = f" In rows 'crafted' of {mixed} some seeds chose by other lists of shifts than the rest (decision 65)."
    return Section("Table 1", (
        Table("Accuracy (%), mean ± standard deviation over n seeds", columns, tuple(rows)),
        Text(f"Checkpoints. {known}.{lists * bool(mixed)}"),
    ))  # fmt: skip


def gap_cell(verdict: Verdict) -> str:
    """
    >>> from meada.evaluation.statistics import Difference, Interval
    >>> gap = Difference(3.0, Interval(1.0, 5.0, "t"), 0.01, 4, "methods")
    >>> gap_cell(Verdict(gap, 0.02)), gap_cell(Verdict(gap, 0.2)), gap_cell(Verdict(Difference(1.0), None))
    ('**+3.00** (+1.00 to +5.00)', '+3.00 (+1.00 to +5.00)', '+1.00 (one run: unknown)')
    """
    gap = verdict.difference
    if gap.interval is None:
        return f"{gap.value:+.2f} ({'one run' if gap.about == 'models' else 'no spread'}: unknown)"
    mark = "**" if verdict.beyond_chance else ""
    return f"{mark}{gap.value:+.2f}{mark} ({gap.interval})"


def pairs_of(groups: Mapping[str, Group]) -> list[tuple[str, str]]:
    """Pairs to compare; methods that are not in the paper with ERM, with ME-ADA and with their variants."""
    known = {name for pair in PAIRS for name in pair}
    later = [name for name in groups if name not in known]
    others = [(name, rival) for name in later for rival in ("erm", "meada")]
    others += [pair for pair in combinations(later, 2) if groups[pair[0]].method == groups[pair[1]].method]
    return [*PAIRS, *others]


def differences(
    groups: Mapping[str, Group], columns: Sequence[str], pairs: Iterable[tuple[str, str]]
) -> Section | None:
    """A row per pair of methods that are both there, at the last step."""
    rows: list[tuple[Cell, ...]] = []
    for pair in pairs:
        if groups.keys() >= set(pair):
            seeds = [[groups[name].by_seed("last", d) for name in pair] for d in columns]
            found = verdicts([over_seeds(*both) for both in seeds])
            name = " - ".join(groups[name].label for name in pair)
            rows.append((name, *map(gap_cell, found), found[0].difference.seeds))
    if not rows:
        return None
    return Section("Differences between methods", (
        Text("Points and 95 % interval: Student's t over the seeds that both have, or Welch's where fewer than two "
             "are common. **Bold**: more than chance, at 0.05 after Holm's correction over the row. "
             f"Checkpoint: {RULE_TEXTS['last']}."),
        Table("", ("difference", *columns, "seeds"), tuple(rows)),
    ))  # fmt: skip


def order(groups: Mapping[str, Group]) -> Section | None:
    """Test ME-ADA > ADA > ERM on SVHN and MNIST-M; nothing with fewer than two common seeds."""
    if not set(ORDER) <= groups.keys():
        return None
    scored = (groups[m].by_seed(rule, d) for m in ORDER for rule in ("last", "oracle") for d in ORDERED)
    seeds = sorted(set.intersection(*map(set, scored)))
    if len(seeds) < 2:
        return None
    whole, single, words = [], [], []
    for rule in ("last", "oracle"):
        scores = {(m, d): {s: groups[m].by_seed(rule, d)[s] for s in seeds} for m in ORDER for d in ORDERED}
        chances = {d: page_trend([[*scores[m, d].values()] for m in ORDER]) for d in ORDERED}
        for d in ORDERED:
            kept = sum(scores["meada", d][s] > scores["ada", d][s] > scores["erm", d][s] for s in seeds)
            whole.append((d, rule, f"{kept} of {len(seeds)}", chances[d]))
        places = [(d, *pair) for d in ORDERED for pair in pairwise(ORDER)]
        steps = verdicts([over_seeds(scores[better, d], scores[worse, d]) for d, better, worse in places])
        for (d, better, worse), step in zip(places, steps, strict=True):
            above = sum(scores[better, d][s] > scores[worse, d][s] for s in seeds)
            single.append((f"{better} - {worse}", d, rule, gap_cell(step), f"{above} of {len(seeds)}"))
        words.append(f"{rule}: {order_verdict(chances, steps)}")
    return Section("The paper's order", (
        Text(f"The paper has ME-ADA > ADA > ERM on SVHN and on MNIST-M. Ours, {len(seeds)} seeds: {'; '.join(words)}."),
        Text("The whole order, by Page's exact test for ordered alternatives: p is how often seeds would come as close "
             "to it if the methods did not differ. It may be small where only one of the two steps is real, so each "
             "step is also judged by its size, by Student's t; **bold**: more than chance, corrected by Holm "
             "over the four steps."),
        Table("", ("domain", "checkpoint", "seeds in the whole order", "p"), tuple(whole), {"p": 4}),
        Table("", ("difference", "domain", "checkpoint", "points (95 % interval)", "above 0"), tuple(single)),
    ))  # fmt: skip


def order_verdict(chances: Mapping[str, float], steps: Sequence[Verdict]) -> str:
    """Trend confirmed: towards the order in every domain. Refuted: one step of it is reversed beyond chance.

    >>> from meada.evaluation.statistics import Difference
    >>> up, unsure = (Verdict(Difference(v), p) for v, p in ((2.0, 0.01), (1.0, 0.4)))
    >>> order_verdict({"svhn": 0.005}, [up, unsure])
    '**trend confirmed** (p = 0.0050 on svhn; 1 of 2 steps above 0 beyond chance, 0 below)'

    """
    sure = [step.difference.value for step in steps if step.beyond_chance]
    above, below = sum(v > 0 for v in sure), sum(v < 0 for v in sure)
    confirmed = all(p <= 1 - LEVEL for p in chances.values())
    word = "refuted" if below else "trend confirmed" if confirmed else "neither confirmed nor refuted"
    ps = ", ".join(f"{p:.4f} on {domain}" for domain, p in chances.items())
    return f"**{word}** (p = {ps}; {above} of {len(steps)} steps above 0 beyond chance, {below} below)"


def _oracle_frequency(experiment: Experiment, groups: Mapping[str, Group], looked: Sequence[Run]) -> Section:
    """The same training with more frequent oracle selection: the effect of selection alone."""
    rows: list[tuple[Cell, ...]] = []
    same = True
    for group in _experiment(looked, experiment.domains).groups:
        before, seeds = groups[group.method], {run.seed for run in group.runs}
        old = replace(before, runs=tuple(r for r in before.runs if r.seed in seeds))
        same &= all(old.by_seed("last", d) == group.by_seed("last", d) for d in experiment.domains)
        listed = ", ".join(str(run.seed) for run in group.runs)
        for one in (old, group):
            how = one.runs[0].settings.evaluation
            cells = [spread(one.mean("oracle", d)) for d in experiment.columns]
            rows.append((before.label, f"every {how.every} steps, {how.subset:,} images per target", *cells, listed))
        pairs = [[one.by_seed("oracle", d) for one in (group, old)] for d in experiment.columns]
        moved = verdicts([over_seeds(*pair) for pair in pairs])
        rows.append((before.label, "difference", *map(gap_cell, moved), listed))
    agreement_text = "the same to the last image" if same else "**not** the same, though they should be"
    return Section("Oracle selection with more frequent scoring", (
        Text("The published code scores every test image of the targets every 100 steps and keeps the best step; the "
             "shipped recipes score fewer. These runs were trained as Table 1's and only scored more often "
             f"(2,007 images are the whole of USPS); their accuracies at the last step are {agreement_text}."),
        Table("Accuracy (%) of the oracle's checkpoint", ("method", "oracle scores", *experiment.columns, "of seed"),
              tuple(rows)),
    ))  # fmt: skip
