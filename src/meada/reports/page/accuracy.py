"""How well each method does on domains it never saw, and which differences are more than chance."""

from collections.abc import Iterator

from meada.evaluation.selection import KNOWS
from meada.reports.page.blocks import Block, Cell, Chart, Section, Series, Table, Text
from meada.reports.page.correct import Bootstrap
from meada.reports.page.groups import Experiment, Group
from meada.reports.page.statistics import FEW, Difference, holm

DIGITS = {"p": 4, "p (Holm)": 4, "difference": 2, "low": 2, "high": 2, "mean": 2, "std": 2}


def accuracy(experiment: Experiment, rule: str) -> Section | None:
    groups = [group for group in experiment.groups if group.scored(rule)]
    if not groups:
        return None
    boot = Bootstrap(rule, experiment.domains)
    boot.prepare(list(experiment.runs()))
    base = experiment.baseline
    rivals = [g for g in groups if g is not base] if base in groups else []
    gaps = {(g.label, d): boot.difference(g, base, d) for g in rivals for d in _columns(experiment)}
    blocks: list[Block] = [Text(_opening(experiment, rule))]
    blocks += [Text(_verdict(g, base, gaps[g.label, _columns(experiment)[-1]])) for g in rivals]
    blocks += [Text(text, "warning") for text in _few(groups, rule)]
    blocks += [_overview(experiment, groups, rule), _bars(experiment, groups, boot, rule)]
    blocks.append(_long(experiment, groups, boot, rule))
    if gaps:
        blocks += [_differences(gaps, base), Text(_how(gaps))]
    return Section("Accuracy on domains never seen", tuple(blocks))


def _columns(experiment: Experiment) -> tuple[str, ...]:
    return (*experiment.domains, *(("mean",) if len(experiment.domains) > 1 else ()))


def _opening(experiment: Experiment, rule: str) -> str:
    n = len(experiment.domains)
    each = "one domain" if n == 1 else f"each of {n} domains"
    return (
        f"Images read rightly, in per cent, on {each} that had no part in training. The checkpoint "
        f"is the one that the rule '{rule}' chooses, which knows {KNOWS.get(rule, rule)}."
    )


def _verdict(group: Group, base: Group, gap: Difference) -> str:
    way = "more" if gap.value >= 0 else "fewer"
    text = f"{group.label} reads {abs(gap.value):.1f} points {way} than {base.label} on average"
    if gap.interval is None:
        return f"{text}; with one seed and no predictions by image, chance cannot be ruled out."
    text += f" (95 % interval {gap.interval.low:+.1f} to {gap.interval.high:+.1f})"
    sure = gap.interval.low > 0 or gap.interval.high < 0
    return f"{text}{'.' if sure else ': no more than chance may give.'}"


def _few(groups: list[Group], rule: str) -> Iterator[str]:
    seeds = {g.label: len(g.scored(rule)) for g in groups}
    short = [f"{label} ({n})" for label, n in seeds.items() if n < FEW]
    if short:
        yield (
            f"Too few seeds: {', '.join(short)}. With fewer than {FEW}, the spread over seeds is "
            "hardly known, and intervals and p-values are too sure of themselves."
        )


def _overview(experiment: Experiment, groups: list[Group], rule: str) -> Table:
    columns = _columns(experiment)
    rows = []
    for group in groups:
        cells: list[Cell] = [group.label, len(group.scored(rule))]
        for domain in columns:
            s = group.summary(rule, domain)
            spread = "" if s is None or s.std is None else f" ± {s.std:.1f}"
            cells.append(None if s is None else f"{s.mean:.1f}{spread}")
        rows.append(tuple(cells))
    title = "Accuracy (%), mean ± standard deviation over seeds"
    return Table(title, ("method", "seeds", *columns), tuple(rows))


def _bars(experiment: Experiment, groups: list[Group], boot: Bootstrap, rule: str) -> Chart:
    """Before and after: the plain method first. Figure 2 where the domains are corruptions."""
    columns, series = _columns(experiment), []
    for group in groups:
        means = [group.summary(rule, d) for d in columns]
        spans = [boot.interval(group, d) for d in columns]
        series.append(Series(
            group.label, tuple(None if m is None else m.mean for m in means), colour=group.colour,
            low=tuple(None if i is None else max(0.0, i.low) for i in spans),
            high=tuple(None if i is None else min(100.0, i.high) for i in spans),
        ))  # fmt: skip
    which = "corruption (Figure 2)" if experiment.corrupted else "domain"
    title = f"Accuracy by {which}, with 95 % intervals where they are known"
    return Chart("bars", title, tuple(series), "domain", "accuracy (%)", columns, y_range=(0, 100))


def _long(experiment: Experiment, groups: list[Group], boot: Bootstrap, rule: str) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for group in groups:
        for domain in _columns(experiment):
            s, span = group.summary(rule, domain), boot.interval(group, domain)
            if s is not None:
                rows.append((
                    group.label, domain, s.mean, s.std, s.n, span.low if span else None,
                    span.high if span else None, span.how if span else "one seed: unknown",
                ))  # fmt: skip
    columns = ("method", "domain", "mean", "std", "seeds", "low", "high", "95 % interval by")
    return Table("Accuracy (%) with 95 % intervals", columns, tuple(rows), DIGITS)


def _differences(gaps: dict[tuple[str, str], Difference], base: Group) -> Table:
    known = [key for key, gap in gaps.items() if gap.p is not None]
    corrected = dict(zip(known, holm([gaps[key].p or 0.0 for key in known]), strict=True))
    rows: list[tuple[Cell, ...]] = []
    for (label, domain), gap in gaps.items():
        span, p = gap.interval, corrected.get((label, domain))
        verdict = "unknown" if p is None else "beyond chance" if p < 0.05 else "may be chance"
        rows.append((
            label, domain, gap.value, span.low if span else None, span.high if span else None,
            gap.p, p, gap.seeds, verdict,
        ))  # fmt: skip
    columns = (
        "method", "domain", "difference", "low", "high", "p", "p (Holm)", "seeds", "verdict",
    )  # fmt: skip
    return Table(f"Difference from {base.label}, in points", columns, tuple(rows), DIGITS)


def _how(gaps: dict[tuple[str, str], Difference]) -> str:
    ways = sorted({gap.interval.how for gap in gaps.values() if gap.interval})
    by = "; ".join(ways) or "not known, with one seed and no predictions by image"
    return (
        f"Intervals and p-values of the differences: {by}. The p-values are corrected by Holm's "
        f"method for {len(gaps)} comparisons; 'beyond chance' means a corrected p below 0.05."
    )
