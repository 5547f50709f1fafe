"""Sections on the runs, accuracy on unseen domains, and differences between methods."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from meada.evaluation.selection import RULE_TEXTS
from meada.evaluation.statistics import Verdict, verdicts
from meada.reports.page.blocks import Block, Cell, Section, Table, Text
from meada.reports.page.cost import spread
from meada.reports.page.groups import Experiment, Group, described, title
from meada.reports.page.paper import comparison, ends
from meada.reports.runs import Run

DIGITS = {"p": 4, "p (Holm)": 4, "difference": 2, "low": 2, "high": 2, "mean": 2, "std": 2}
Gaps = Mapping[tuple[str, str], Verdict]  # by rival and domain


def accuracy(experiment: Experiment, rule: str) -> Section | None:
    groups = [group for group in experiment.groups if group.scored(rule)]
    if not groups:
        return None
    base, columns, n = experiment.baseline, experiment.columns, len(experiment.domains)
    gaps: dict[tuple[str, str], Verdict] = {}
    each = "one domain" if n == 1 else f"each of {n} domains"
    blocks: list[Block] = [Text(f"Accuracy (%) on {each} not used in training. Checkpoint: {RULE_TEXTS[rule]}.")]
    for group in [g for g in groups if g is not base] if base in groups else []:
        judged = verdicts([group.minus(base, rule, domain) for domain in columns])  # corrected over the domains
        gaps |= {(group.label, domain): verdict for domain, verdict in zip(columns, judged, strict=True)}
        blocks.append(Text(_sentence(group, base, judged[-1])))
    if single := [g.label for g in groups if len(g.scored(rule)) == 1]:
        blocks.append(Text(
            f"One seed: {', '.join(single)}. This compares two models, not two methods. Another run of the same "
            "method may differ by a point or more, which an interval over images does not show.", "warning",
        ))  # fmt: skip
    title = "Accuracy (%), mean ± standard deviation over seeds"
    blocks += [overview(experiment, groups, rule, title), comparison(experiment, rule), _long(experiment, groups, rule)]
    if gaps:
        blocks += [_differences(gaps, base), Text(_how(gaps, columns))]
    return Section("Accuracy on domains not seen in training", tuple(blocks))


def _sentence(group: Group, base: Group, verdict: Verdict) -> str:
    gap = verdict.difference
    way = "higher" if gap.value >= 0 else "lower"
    who = f"{group.label} is {abs(gap.value):.1f} points {way} than {base.label} on average"
    span = "" if gap.interval is None else f" (95 % interval {gap.interval.low:+.1f} to {gap.interval.high:+.1f})"
    if gap.about == "models":
        known = "the two models differ on these images" if verdict.beyond_chance else "this may be chance"
        if verdict.p is None:
            known = "no predictions by image were kept, so whether the two models differ is unknown"
        rest = "about the methods, one training run of each says nothing"
        return f"These two models, one run of each: {who}{span}; {known}; {rest}."
    if verdict.p is None:
        return f"{who}{span}; the seeds do not vary, so whether this is chance is unknown."
    return f"{who} over {gap.seeds} seeds{span}: {verdict}."


def overview(experiment: Experiment, groups: Sequence[Group], rule: str, title: str) -> Table:
    columns = experiment.columns
    rows: list[tuple[Cell, ...]] = []
    for group in groups:
        means = (spread(group.mean(rule, d), 1) for d in columns)
        rows.append((group.label, len(group.scored(rule)), *means))
    return Table(title, ("method", "seeds", *columns), tuple(rows))


def _long(experiment: Experiment, groups: list[Group], rule: str) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for group in groups:
        for domain in experiment.columns:
            s, span = group.mean(rule, domain), group.interval(rule, domain)
            rows.append((group.label, domain, s.mean, s.std, s.n, *ends(span), span.how if span else "unknown"))
    columns = ("method", "domain", "mean", "std", "seeds", "low", "high", "95 % interval by")
    return Table("Accuracy (%) with 95 % intervals", columns, tuple(rows), DIGITS)


def _differences(gaps: Gaps, base: Group) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for (label, domain), verdict in gaps.items():
        gap = verdict.difference
        rows.append((label, domain, gap.value, *ends(gap.interval), gap.p, verdict.p, gap.seeds, str(verdict)))
    columns = ("method", "domain", "difference", "low", "high", "p", "p (Holm)", "seeds", "verdict")
    return Table(f"Difference from {base.label}, in points", columns, tuple(rows), DIGITS)


def _how(gaps: Gaps, columns: Sequence[str]) -> str:
    ways = sorted({gap.difference.interval.how for gap in gaps.values() if gap.difference.interval})
    by = "; ".join(ways) or "unknown (one seed, and no predictions by image)"
    return (
        f"95 % intervals of the differences: {by}. Intervals over seeds are about new training runs and these test "
        f"images. p-values are corrected by Holm's method over the {len(columns)} comparisons of a method; 'beyond "
        "chance' means a corrected p below 0.05."
    )


def what_was_run(experiments: Sequence[Experiment], left_out: Sequence[str]) -> Section:
    runs = [run for experiment in experiments for run in experiment.runs()]
    notes = dict.fromkeys(f"{r.record['recipe']}: {r.record['note']}." for r in runs if r.record.get("note"))
    blocks: list[Block] = [Text(text) for text in (*map(_introduction, experiments), *notes)]
    blocks += [Text(text, "missing") for text in left_out]
    if unfinished := [run.name for run in runs if not run.finished]:
        blocks.append(Text(f"Not finished, so without results: {', '.join(unfinished)}.", "warning"))
    rows = tuple(
        (run.name, str(run.record["recipe"]), group.label, experiment.network, experiment.data, run.seed,
         group.rounds, int(run.record.get("steps", 0)), "yes" if run.finished else "no")
        for experiment in experiments for group in experiment.groups for run in group.runs
    )  # fmt: skip
    columns = ("folder", "recipe", "method", "network", "data", "seed", "K", "steps", "finished")
    return Section("What was run", (*blocks, Table("Runs", columns, rows)))


def _introduction(experiment: Experiment) -> str:
    """Introduction: networks, data and methods of an experiment."""
    runs, groups = list(experiment.runs()), experiment.groups
    train = runs[0].recipe.get("data", {}).get("train")
    source = f"{train:,} images" if isinstance(train, int) else "images"
    names = dict.fromkeys(group.method for group in groups)
    methods = "; ".join(_method(name, [g for g in groups if g.method == name]) for name in names)
    tested = ", ".join(experiment.domains) or "none so far"
    kind = "corruptions of them" if experiment.corrupted else "domains not seen in training"
    return (
        f"{len(runs)} {'run' if len(runs) == 1 else 'runs'} of the network {experiment.network or 'unknown'} were "
        f"trained on {source} of {experiment.data or 'unknown'} and tested on {kind}: {tested}. Methods: {methods}."
    )


def _method(method: str, groups: Sequence[Group]) -> str:
    words = [found.about.rstrip(".") for name in method.split("+") if (found := described(name)) and found.about]
    about = f": {'; '.join(words)}" if words else ""
    forms = []
    for group in groups:
        mark = group.label.removeprefix(title(method)).removeprefix(", ")
        seeds = f"seed{'s' * (len(group.runs) > 1)} {', '.join(str(run.seed) for run in group.runs)}"
        forms.append(f"{mark}: {seeds}" if mark else seeds)
    return f"{title(method)}{about} ({'; '.join(forms)})"


def provenance(experiments: Sequence[Experiment], command: str) -> Section:
    """Versions, machines and data files, without repetitions."""
    runs = [run for experiment in experiments for run in experiment.runs()]
    blocks: list[Block] = [Text(text) for text in dict.fromkeys(_lines(runs))]
    files = [(str(name), str(what)) for run in runs for name, what in run.record.get("provenance", {}).items()]
    if files:
        blocks.append(Table("Where the data came from", ("domain", "what was read"), tuple(dict.fromkeys(files))))
    if command:
        blocks.append(Text(f"This page: {command}"))
    return Section("How these numbers were made", tuple(blocks))


def _lines(runs: Sequence[Run]) -> Iterator[str]:
    for run in runs:
        where: dict[str, Any] = run.record.get("environment", {})
        if where:
            of = {"device": "cpu", "precision": "fp32", **where}
            meada, torch, python, system = (of.get(k, "?") for k in ("meada", "torch", "python", "system"))
            machine = f"{system}, {of.get('processor', '?')}, {of.get('threads', '?')} threads, device {of['device']}"
            yield f"meada {meada}, torch {torch}, Python {python} on {machine}, precision {of['precision']}."
        weights = run.record.get("weights") or {}
        if weights.get("file"):
            yield f"Weights from {weights['file']} (sha256 {weights.get('sha256', '?')})."
