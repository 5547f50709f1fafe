"""Comparison with the paper's printed numbers (``paper.toml``), and Figure 1: accuracy against K."""

import tomllib
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from typing import Any

from meada.errors import MeadaError
from meada.evaluation.selection import RULE_TEXTS
from meada.evaluation.statistics import Interval, Summary, Verdict, verdicts, welch, within
from meada.reports.page.blocks import Block, Cell, Chart, Section, Series, Table, Text
from meada.reports.page.groups import COLOURS, Experiment, Group, title
from meada.reports.runs import Run

PAPER: dict[str, Any] = tomllib.loads((files("meada.reports") / "paper.toml").read_text(encoding="utf-8"))
MARGIN = 5.0  # points: half of what ME-ADA gains on SVHN in the paper; set before there were more than three seeds
FEWEST = 3  # seeds of a verdict: with two, intervals hold in 88 of 100 cases
SELECTION_KEYS = frozenset({"evaluation.every", "evaluation.subset"})  # they choose a checkpoint, and train nothing
KEPT = SELECTION_KEYS | {"plan.rounds"}  # settings that may differ from the shipped recipe's
NOTE = (
    "The paper's checkpoints were chosen on the test domains themselves; ours under 'oracle' were chosen in the "
    "same way, which is impossible in practice. Difference: ours less the paper's, in points."
)
HOW = (
    "Two tests, both with both sides' errors (Welch's t; the paper's are of ten runs). **differs**: a difference of "
    "zero is rejected, two-sided, p below 0.05 after Holm's correction over the rows of a method and checkpoint. "
    f"reproduced: zero is not rejected, and a difference of {MARGIN:g} points or more to either side is (the whole "
    f"95 % interval lies within {MARGIN:g} points of zero: two one-sided tests at 0.025, uncorrected). too few seeds: "
    "neither, or fewer than three seeds (with three the intervals hold in 93 of 100 cases). Where the paper's methods "
    "lie within a few points of each other, as on usps, 'reproduced' does not tell them apart. With a margin below the "
    "larger end of its interval a cell would not be called reproduced. The paper prints no deviation of the mean over "
    "these domains: the mean of theirs, which it cannot exceed, stands for it, with the smaller sample's degrees of "
    "freedom, so that those intervals are too wide rather than too narrow."
)

BARS = (
    "Bars: 95 % intervals over n seeds (Student's t); where n = 1, over test images alone (bootstrap; none without "
    "predictions), which says nothing of another training run. Hollow diamonds: the paper."
)


def compare_with_paper(experiment: Experiment, rules: Sequence[str]) -> Section | None:
    """Section with a row per method, checkpoint and domain, and one figure per checkpoint."""
    rows: list[tuple[Cell, ...]] = []
    tested = False
    for group in experiment.groups:
        for rule in dict.fromkeys(rules):
            papers, judged = _against(experiment, group, rule)
            tested |= bool(judged)
            for domain, paper in papers.items():
                ours, span, word = group.mean(rule, domain), None, None
                if verdict := judged.get(domain):
                    span, word = verdict.difference.interval, agreement(verdict)
                gap = ours.mean - paper.mean
                rows.append((group.label, rule, domain, ours.mean, ours.n, paper.mean, gap, *ends(span), word))
    if not rows:
        return None
    columns = ("method", "checkpoint", "domain", "ours", "seeds", "paper", "difference", "low", "high", "verdict")
    blocks: list[Block] = [Text(NOTE), *([Text(HOW)] if tested else [])]
    runs = list(experiment.runs())
    if any(r.record.get("scale", 1) != 1 or r.recipe.get("data", {}).get("per_domain") is not None for r in runs):
        text = "Ours were made at a smaller scale than the paper's: the two do not measure the same."
        blocks.append(Text(text, "warning"))
    domains = [d for d in experiment.columns if any(paper_of(experiment, g, d) for g in experiment.groups)]
    for rule in dict.fromkeys(rules):  # every method in the order of the table, also those that the paper does not have
        series = [
            points(g.label, rule, [(g, d) for d in domains], [paper_of(experiment, g, d) for d in domains],
                   counted=True, colour=g.colour)
            for g in experiment.groups if g.scored(rule)
        ]  # fmt: skip
        about, name = f"Accuracy, ours and the paper's; ours: {RULE_TEXTS[rule]}", f"paper-{experiment.data}-{rule}"
        blocks.append(Chart("panels", about, tuple(series), "domain", "accuracy (%)", tuple(domains), name=name))
    blocks.append(Text(BARS))
    table = Table("Accuracy (%), the paper's and ours", columns, tuple(rows), {name: 2 for name in columns})
    return Section("Comparison with the paper", (*blocks, table))


def paper_of(experiment: Experiment, group: Group, domain: str) -> Summary | None:
    """The paper's number for this method if it is comparable: a shipped recipe, Table 1's K, Table 2's one target."""
    if experiment.data == "digits" and group.method not in ("erm", "par") and group.rounds != PAPER["digits"]["rounds"]:
        return None
    if experiment.data == "pacs" and len(experiment.domains) != 1:
        return None
    found = printed(experiment.data, experiment.network, group.method, domain, experiment.domains)
    return found if found and all(map(as_shipped, group.runs)) else None


def as_shipped(run: Run) -> bool:
    """Whether a run trained by a shipped recipe, with any number of rounds."""
    try:
        return run.changed is not None and run.changed.keys() <= KEPT
    except (MeadaError, OSError):  # no recipe, or one that names somebody's own file
        return False


def _against(experiment: Experiment, group: Group, rule: str) -> tuple[dict[str, Summary], dict[str, Verdict]]:
    """The paper's numbers by domain, and verdicts on those with a standard error."""
    papers = {d: p for d in experiment.columns if (p := paper_of(experiment, group, d)) and group.scored(rule)}
    tests = {d: welch(group.mean(rule, d), p, bound=d == "mean") for d, p in papers.items() if p.std is not None}
    return papers, dict(zip(tests, verdicts([*tests.values()]), strict=True))


def ends(span: Interval | None) -> tuple[float | None, float | None]:
    return (span.low, span.high) if span else (None, None)


def agreement(verdict: Verdict) -> str:
    """
    >>> four, two, paper = Summary(42.5, 1.7, 4), Summary(42.5, 0.1, 2), Summary(42.0, 1.74, 10)
    >>> [agreement(verdicts([welch(ours, paper)])[0]) for ours in (four, two)]
    ['reproduced', 'too few seeds']
    """
    gap = verdict.difference
    if gap.interval is None:
        return "unknown (one run)" if gap.about == "models" else "unknown (no spread)"
    if gap.seeds < FEWEST:
        return "too few seeds"
    if verdict.beyond_chance:
        return "**differs**"
    return "reproduced" if within(gap, MARGIN) else "too few seeds"


def comparison(experiment: Experiment, rule: str, name: str = "") -> Chart:
    """Chart of every method on every domain, the plain method first; Figure 2 if domains are corruptions."""
    which = "corruption (Figure 2)" if experiment.corrupted else "domain"
    about = f"Accuracy by {which}, with 95 % intervals where they are known"
    groups = [group for group in experiment.groups if group.scored(rule)]
    series = (points(g.label, rule, [(g, d) for d in experiment.columns], colour=g.colour) for g in groups)
    return Chart("points", about, tuple(series), "domain", "accuracy (%)", experiment.columns, name=name)


def points(
    name: str, rule: str, places: Sequence[tuple[Group, str]], papers: Sequence[Summary | None] = (), *,
    counted: bool = False, single: bool = True, **look: Any,
) -> Series:  # fmt: skip
    """Means of groups on domains with 95 % intervals if known, clamped to 0 and 100 %.

    ``counted``: the name says how many seeds there are; ``single``: also intervals of single runs, over images.
    """
    means = [group.summary(rule, domain) for group, domain in places]
    spans = [g.interval(rule, d) if single or len(g.scored(rule)) > 1 else None for g, d in places]
    if counted:
        name += f" (n={' or '.join(str(n) for n in sorted({s.n for s in means if s}))})"
    y, paper = (tuple(s.mean if s else None for s in each) for each in (means, papers))
    low = tuple(max(0.0, span.low) if span else None for span in spans)
    high = tuple(min(100.0, span.high) if span else None for span in spans)
    return Series(name, y, low=low, high=high, paper=paper if any(papers) else (), **look)


def rounds_section(experiment: Experiment, rule: str) -> Section | None:
    """Figure 1: a chart per target, a line per method over K with 95 % intervals, ERM as a horizontal line."""
    methods = dict.fromkeys(g.method for g in experiment.groups if g.method != "erm")
    lines = {m: groups for m in methods if len(groups := _by_rounds(experiment, m, rule)) > 1}
    if not lines:
        return None
    base, most = experiment.baseline, max(group.rounds for groups in lines.values() for group in groups)
    plain = [base] if base.method == "erm" and base.scored(rule) else []
    charts: list[Block] = []
    for domain in experiment.columns:
        series = []
        for method, groups in lines.items():
            papers = [paper_of(experiment, group, domain) for group in groups]
            places, colour = [(group, domain) for group in groups], COLOURS.get(method, groups[0].colour)
            line = points(title(method), rule, places, papers, single=False, colour=colour)
            series.append(replace(line, x=tuple(group.rounds for group in groups)))
        for erm in plain:
            papers = [paper_of(experiment, erm, domain)]
            one = points("ERM", rule, [(erm, domain)], papers, single=False, colour=erm.colour, dashed=True)
            low, high, paper = ((*side, None) if side else () for side in (one.low, one.high, one.paper))
            series.append(replace(one, x=(0, most), y=one.y * 2, low=low, high=high, paper=paper))
        charts.append(Chart("lines", f"{domain}: accuracy against K (Figure 1)", tuple(series), "K", "accuracy (%)",
                            small=True, name=f"figure1-{domain}"))  # fmt: skip
    rows: list[tuple[Cell, ...]] = []
    for group in (*plain, *(g for groups in lines.values() for g in groups)):
        cells = (str(group.summary(rule, d)) for d in experiment.columns)
        rows.append((title(group.method), group.rounds, *cells))
    return Section("Figure 1: accuracy by number of rounds", (
        Text(f"Accuracy against K, the number of maximisation rounds; K = 0 is ERM. Checkpoint: {RULE_TEXTS[rule]}. "
             "Bars are 95 % intervals over the seeds, where there are two or more; hollow marks: Table 1 of the "
             "paper, whose checkpoints were chosen on the targets."),
        *charts,
        Table("Accuracy (%) by K, mean ± standard deviation over n seeds", ("method", "K", *experiment.columns),
              tuple(rows)),
    ))  # fmt: skip


def _by_rounds(experiment: Experiment, method: str, rule: str) -> list[Group]:
    """A method's groups by shipped recipes in the order of K; of groups with the same K, the one with most seeds."""
    found: dict[int, Group] = {}
    for group in sorted(experiment.groups, key=lambda group: (group.rounds, -len(group.runs))):
        if group.method == method and group.scored(rule) and all(map(as_shipped, group.runs)):
            found.setdefault(group.rounds, group)
    return list(found.values())


def printed(data: str, network: str, method: str, domain: str, domains: Sequence[str] = ()) -> Summary | None:
    """What Table 1, 2 or 3 prints for a method; ``mean`` is over ``domains``. None: the paper has no such number.

    >>> printed("digits", "lenet", "meada", "svhn")
    Summary(mean=42.0, std=1.74, n=10)

    """
    if data in PAPER["cifar"]:
        row = dict(zip(PAPER["cifar"]["methods"], PAPER["cifar"][data].get(network, ()), strict=False))
        return Summary(row[method], None, 1) if method in row and domain == "mean" and len(domains) == 15 else None
    table = PAPER.get(data, {})
    means, known = table.get("mean", {}).get(method), table.get("domains", ())
    asked = list(domains) if domain == "mean" else [domain]
    if means is None or not asked or not set(asked) <= set(known):
        return None
    places = [known.index(name) for name in asked]
    deviations = table.get("std", {}).get(method)
    std = sum(deviations[i] for i in places) / len(places) if deviations else None  # of a mean: at most that
    return Summary(sum(means[i] for i in places) / len(places), std, int(table.get("runs", 1)))
