"""The paper's printed numbers (``paper.toml``), ours next to them, and Figure 1: accuracy against K."""

import tomllib
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Any

from meada.evaluation.selection import RULE_TEXTS
from meada.evaluation.statistics import Interval, Summary, Verdict, verdicts, welch, within
from meada.reports.page.blocks import Block, Cell, Chart, Section, Series, Table, Text
from meada.reports.page.groups import COLOURS, Experiment, Group, title

MARGIN = 5.0  # points: half of what ME-ADA gains on SVHN in the paper; set before there were more than three seeds
NOTE = (
    "The paper's checkpoints were chosen on the test domains themselves; ours under 'oracle' were chosen alike, and no "
    "such number can be had in practice. Difference: ours less the paper's, in points."
)
HOW = (
    "Two tests, both with both sides' errors (Welch's t; the paper's are of ten runs). **differs**: a difference of "
    "zero is rejected, two-sided, p below 0.05 after Holm's correction over the rows of a method and checkpoint. "
    f"reproduced: zero is not rejected, and a difference of {MARGIN:g} points or more to either side is (the whole "
    f"95 % interval lies within {MARGIN:g} points of zero: two one-sided tests at 0.025, uncorrected). too few seeds: "
    "neither. With a margin below the larger end of its interval a cell would not be called reproduced. The paper "
    "prints no deviation of the mean over these domains: the mean of theirs, which it cannot exceed, stands for it, "
    "with the smaller sample's degrees of freedom, so that those intervals are too wide rather than too narrow."
)

BARS = (
    "Bars: 95 % intervals over n seeds (Student's t); where n = 1, over test images alone (bootstrap; none without "
    "predictions), which says nothing of another training run. Hollow diamonds: the paper."
)


def beside_the_paper(experiment: Experiment, rules: Sequence[str]) -> Section | None:
    """A row per method, checkpoint and domain, and one figure per checkpoint."""
    found = [(g, rule, *_against(experiment, g, rule)) for g in experiment.groups for rule in dict.fromkeys(rules)]
    rows = [row for group, rule, papers, judged in found for row in _rows(group, rule, papers, judged)]
    if not rows:
        return None
    columns = ("method", "checkpoint", "domain", "ours", "seeds", "paper", "difference", "low", "high", "verdict")
    digits = {name: 2 for name in columns}
    tested = any(group.summary(rule, d) and p.std for group, rule, papers, _ in found for d, p in papers.items())
    scaled = {float(run.record.get("scale", 1.0)) for run in experiment.runs()} != {1.0}
    per_domain = {run.recipe.get("data", {}).get("per_domain") for run in experiment.runs()} - {None}
    blocks: list[Block] = [Text(NOTE), *([Text(HOW)] if tested else [])]
    if scaled or per_domain:
        blocks.append(
            Text("Ours were made at a smaller scale than the paper's: the two do not measure the same.", "warning")
        )
    blocks += [_figure(experiment, rule) for rule in dict.fromkeys(rules)]
    blocks.append(Text(BARS))
    blocks.append(Table("Accuracy (%), the paper's and ours", columns, tuple(rows), digits))
    return Section("Next to the paper", tuple(blocks))


def paper_of(experiment: Experiment, group: Group, domain: str) -> Summary | None:
    """The paper's number for this method, where it is comparable: Table 1's K, Table 2's single target."""
    if experiment.data == "digits" and group.method not in ("erm", "par") and group.rounds != PAPER["digits"]["rounds"]:
        return None
    if experiment.data == "pacs" and len(experiment.domains) != 1:
        return None
    return printed(experiment.data, experiment.network, group.method, domain, experiment.domains)


def _against(experiment: Experiment, group: Group, rule: str) -> tuple[dict[str, Summary], dict[str, Verdict]]:
    """The paper's numbers by domain, and the verdict on each that has an error."""
    papers = {d: p for d in experiment.columns if (p := paper_of(experiment, group, d)) and group.scored(rule)}
    ours = {d: group.summary(rule, d) for d in papers}
    known = {d: s for d, s in ours.items() if s is not None and papers[d].std is not None}
    tests = {d: welch(s, papers[d], bound=d == "mean") for d, s in known.items()}
    return papers, dict(zip(tests, verdicts([*tests.values()]), strict=True))


def _rows(group: Group, rule: str, papers: dict[str, Summary], judged: dict[str, Verdict]) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for domain, paper in papers.items():
        ours, verdict = group.summary(rule, domain), judged.get(domain)
        if ours is not None:
            span, word = (verdict.difference.interval, agreement(verdict)) if verdict else (None, None)
            gap = ours.mean - paper.mean
            rows.append((group.label, rule, domain, ours.mean, ours.n, paper.mean, gap, *ends(span), word))
    return rows


def ends(span: Interval | None) -> tuple[float | None, float | None]:
    return (span.low, span.high) if span else (None, None)


def agreement(verdict: Verdict) -> str:
    """
    >>> four, two, paper = Summary(42.5, 1.7, 4), Summary(42.5, 1.7, 2), Summary(42.0, 1.74, 10)
    >>> [agreement(verdicts([welch(ours, paper)])[0]) for ours in (four, two)]
    ['reproduced', 'too few seeds']
    """
    gap = verdict.difference
    if gap.interval is None:
        return "unknown (one run)" if gap.about == "models" else "unknown (no spread)"
    if verdict.beyond_chance:
        return "**differs**"
    return "reproduced" if within(gap, MARGIN) else "too few seeds"


def _figure(experiment: Experiment, rule: str) -> Chart:
    """Every method in the order of the table, also those that the paper does not have."""
    columns = [d for d in experiment.columns if any(paper_of(experiment, g, d) for g in experiment.groups)]
    series = []
    for group in experiment.groups:
        if seeds := len(group.scored(rule)):
            papers = [paper_of(experiment, group, d) for d in columns]
            series.append(points(group, rule, columns, f"{group.label} (n={seeds})", papers))
    name = f"paper-{experiment.data}-{rule}"
    about = f"Accuracy, ours and the paper's; ours: {RULE_TEXTS[rule]}"
    return Chart("panels", about, tuple(series), "domain", "accuracy (%)", tuple(columns), name=name)


def comparison(experiment: Experiment, rule: str, name: str = "") -> Chart:
    """Every method on every domain, the plain method first. Figure 2 where the domains are corruptions."""
    which = "corruption (Figure 2)" if experiment.corrupted else "domain"
    about = f"Accuracy by {which}, with 95 % intervals where they are known"
    series = tuple(points(group, rule, experiment.columns) for group in experiment.groups if group.scored(rule))
    return Chart("points", about, series, "domain", "accuracy (%)", experiment.columns, name=name)


def points(
    group: Group, rule: str, columns: Sequence[str], name: str = "", papers: Sequence[Summary | None] = ()
) -> Series:
    """Means with 95 % intervals where they are known, cut off at 0 and 100 %."""
    means, spans = [group.summary(rule, d) for d in columns], [group.interval(rule, d) for d in columns]
    inside = [Interval(max(0.0, i.low), min(100.0, i.high), i.how) if i else None for i in spans]
    return with_intervals(name or group.label, means, inside, papers, colour=group.colour)


def with_intervals(
    name: str, means: Sequence[Summary | None], spans: Sequence[Interval | None], papers: Sequence[Summary | None],
    **look: Any,
) -> Series:  # fmt: skip
    low, high = (tuple(ends(span)[k] for span in spans) for k in (0, 1))
    mean, paper = (tuple(s.mean if s else None for s in each) for each in (means, papers))
    return Series(name, mean, low=low, high=high, paper=paper if any(papers) else (), **look)


def seeded(label: str, found: Iterable[Summary | None]) -> str:
    """With the numbers of seeds."""
    return f"{label} (n={' or '.join(str(n) for n in sorted({s.n for s in found if s}))})"


def rounds_section(experiment: Experiment, rule: str) -> Section | None:
    """Figure 1: a chart per target, a line per method over K with 95 % intervals, ERM across."""
    methods = list(dict.fromkeys(g.method for g in experiment.groups if g.method != "erm"))
    lines = {m: _by_rounds(experiment, m, rule) for m in methods}
    lines = {m: groups for m, groups in lines.items() if len(groups) > 1}
    if not lines:
        return None
    base = experiment.baseline
    plain = [base] if base.method == "erm" and base.scored(rule) else []
    most = max(k for groups in lines.values() for k in groups)
    charts: list[Block] = []
    for domain in experiment.columns:
        series = [_line(experiment, m, g, domain, rule) for m, g in lines.items()]
        if plain and (s := plain[0].summary(rule, domain)):
            span = plain[0].interval(rule, domain) if s.n > 1 else None
            paper = paper_of(experiment, plain[0], domain)
            look = {"x": (0, most), "colour": plain[0].colour, "dashed": True}
            series.append(with_intervals("ERM", (s, s), (span, None), (paper, None), **look))
        charts.append(Chart("lines", f"{domain}: accuracy against K (Figure 1)", tuple(series), "K", "accuracy (%)",
                            small=True, name=f"figure1-{domain}"))  # fmt: skip
    rows: list[tuple[Cell, ...]] = []
    for group in (*plain, *(g for of in lines.values() for g in of.values())):
        cells = (str(group.summary(rule, d)) for d in experiment.columns)
        rows.append((title(group.method), group.rounds, *cells))
    return Section("Figure 1: how many rounds", (
        Text(f"Accuracy against K, the number of maximisation rounds; K = 0 is ERM. Checkpoint: {RULE_TEXTS[rule]}. "
             "Bars are 95 % intervals over the seeds, where there are two or more; hollow marks: Table 1 of the "
             "paper, whose checkpoints were chosen on the targets."),
        *charts,
        Table("Accuracy (%) by K, mean ± standard deviation over n seeds", ("method", "K", *experiment.columns),
              tuple(rows)),
    ))  # fmt: skip


def _by_rounds(experiment: Experiment, method: str, rule: str) -> dict[int, Group]:
    """Of groups with the same K, the one with most seeds."""
    found: dict[int, Group] = {}
    for group in experiment.groups:
        if group.method == method and group.scored(rule):
            held = found.get(group.rounds)
            if held is None or len(group.runs) > len(held.runs):
                found[group.rounds] = group
    return dict(sorted(found.items()))


def _line(experiment: Experiment, method: str, groups: dict[int, Group], domain: str, rule: str) -> Series:
    papers = [paper_of(experiment, group, domain) for group in groups.values()]
    first = next(iter(groups.values()))
    spans = [group.interval(rule, domain) if len(group.scored(rule)) > 1 else None for group in groups.values()]
    means = [group.summary(rule, domain) for group in groups.values()]
    look = {"x": tuple(groups), "colour": COLOURS.get(method, first.colour)}
    return with_intervals(title(method), means, spans, papers, **look)


PAPER: dict[str, Any] = tomllib.loads((files("meada.reports") / "paper.toml").read_text(encoding="utf-8"))


def printed(data: str, network: str, method: str, domain: str, domains: Sequence[str] = ()) -> Summary | None:
    """What Table 1, 2 or 3 prints for a method; ``mean`` is over ``domains``. None: the paper has no such number.

    >>> printed("digits", "lenet", "meada", "svhn")
    Summary(mean=42.0, std=1.74, n=10)
    >>> round(printed("digits", "lenet", "meada", "mean", ["svhn", "mnist_m", "usps"]).mean, 2)
    61.69
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
