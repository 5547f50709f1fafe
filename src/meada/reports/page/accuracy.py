"""Accuracy of each method on domains not seen in training, and which differences are more than chance."""

from collections.abc import Iterator, Mapping, Sequence

from meada.evaluation.selection import KNOWS
from meada.evaluation.statistics import Verdict, verdicts
from meada.reports.page.blocks import Block, Cell, Section, Table, Text
from meada.reports.page.cost import spread
from meada.reports.page.groups import Experiment, Group
from meada.reports.page.paper import comparison

DIGITS = {"p": 4, "p (Holm)": 4, "difference": 2, "low": 2, "high": 2, "mean": 2, "std": 2}
Gaps = Mapping[tuple[str, str], Verdict]  # by rival and domain


def accuracy(experiment: Experiment, rule: str) -> Section | None:
    groups = [group for group in experiment.groups if group.scored(rule)]
    if not groups:
        return None
    base, columns = experiment.baseline, experiment.columns
    rivals = [g for g in groups if g is not base] if base in groups else []
    gaps = {key: gap for g in rivals for key, gap in _against(g, base, rule, columns).items()}
    blocks: list[Block] = [Text(_opening(experiment, rule))]
    blocks += [Text(_sentence(g, base, gaps[g.label, columns[-1]])) for g in rivals]
    blocks += [Text(text, "warning") for text in _single(groups, rule)]
    title = "Accuracy (%), mean ± standard deviation over seeds"
    blocks += [overview(experiment, groups, rule, title), comparison(experiment, rule), _long(experiment, groups, rule)]
    if gaps:
        blocks += [_differences(gaps, base), Text(_how(gaps, columns))]
    return Section("Accuracy on domains not seen in training", tuple(blocks))


def _against(group: Group, base: Group, rule: str, columns: Sequence[str]) -> dict[tuple[str, str], Verdict]:
    """Each domain's difference; p-values are corrected over the domains of this rival."""
    judged = verdicts([group.less(base, rule, domain) for domain in columns])
    return {(group.label, domain): verdict for domain, verdict in zip(columns, judged, strict=True)}


def _opening(experiment: Experiment, rule: str) -> str:
    n = len(experiment.domains)
    each = "one domain" if n == 1 else f"each of {n} domains"
    return f"Accuracy (%) on {each} not used in training. Checkpoint: {KNOWS.get(rule, rule)}."


def _sentence(group: Group, base: Group, verdict: Verdict) -> str:
    gap = verdict.difference
    way = "higher" if gap.value >= 0 else "lower"
    who = f"{group.label} is {abs(gap.value):.1f} points {way} than {base.label} on average"
    span = "" if gap.interval is None else f" (95 % interval {gap.interval.low:+.1f} to {gap.interval.high:+.1f})"
    if gap.about == "models":
        rest = "about the methods, one training run of each says nothing"
        return f"These two models, one run of each: {who}{span}; {_models(verdict)}{rest}."
    if verdict.p is None:
        return f"{who}{span}; the seeds do not vary, so whether this is chance is unknown."
    return f"{who} over {gap.seeds} seeds{span}: {verdict}."


def _models(verdict: Verdict) -> str:
    if verdict.p is None:
        return "no predictions by image were kept, so whether the two models differ is unknown; "
    return "the two models differ on these images; " if verdict.beyond_chance else "this may be chance; "


def _single(groups: list[Group], rule: str) -> Iterator[str]:
    single = [g.label for g in groups if len(g.scored(rule)) == 1]
    if single:
        yield (
            f"One seed: {', '.join(single)}. What is compared there is two models. Another training run of the same "
            "method may differ by a point or more, which an interval over images does not show."
        )


def overview(experiment: Experiment, groups: list[Group], rule: str, title: str) -> Table:
    rows = []
    for group in groups:
        found = [group.summary(rule, domain) for domain in experiment.columns]
        rows.append((group.label, len(group.scored(rule)), *(None if s is None else spread(s, 1) for s in found)))
    return Table(title, ("method", "seeds", *experiment.columns), tuple(rows))


def _long(experiment: Experiment, groups: list[Group], rule: str) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for group in groups:
        for domain in experiment.columns:
            s, span = group.summary(rule, domain), group.interval(rule, domain)
            if s is not None:
                rows.append((
                    group.label, domain, s.mean, s.std, s.n, span.low if span else None,
                    span.high if span else None, span.how if span else "unknown",
                ))  # fmt: skip
    columns = ("method", "domain", "mean", "std", "seeds", "low", "high", "95 % interval by")
    return Table("Accuracy (%) with 95 % intervals", columns, tuple(rows), DIGITS)


def _differences(gaps: Gaps, base: Group) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for (label, domain), verdict in gaps.items():
        gap, span = verdict.difference, verdict.difference.interval
        rows.append((
            label, domain, gap.value, span.low if span else None, span.high if span else None,
            gap.p, verdict.p, gap.seeds, str(verdict),
        ))  # fmt: skip
    columns = (
        "method", "domain", "difference", "low", "high", "p", "p (Holm)", "seeds", "verdict",
    )  # fmt: skip
    return Table(f"Difference from {base.label}, in points", columns, tuple(rows), DIGITS)


def _how(gaps: Gaps, columns: Sequence[str]) -> str:
    ways = sorted({gap.difference.interval.how for gap in gaps.values() if gap.difference.interval})
    by = "; ".join(ways) or "unknown (one seed, and no predictions by image)"
    return (
        f"95 % intervals of the differences: {by}. Intervals over seeds are about new training runs and these test "
        f"images. p-values are corrected by Holm's method over the {len(columns)} comparisons of a method; 'beyond "
        "chance' means a corrected p below 0.05."
    )
