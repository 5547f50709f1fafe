"""The paper's numbers beside ours, and its Figure 1: accuracy against K."""

from collections.abc import Iterator

from meada.reports import cifar, digits, table2, table3
from meada.reports.beside_paper import PAPER, paper
from meada.reports.page.blocks import Block, Cell, Chart, Section, Series, Table, Text
from meada.reports.page.groups import COLOURS, Experiment, Group

NOTE = (
    "The paper's figures are of checkpoints chosen on the test domains themselves, as the "
    "published code does; 'ours, oracle' is chosen alike, and no number of the kind can be had in "
    "practice."
)


def beside_the_paper(experiment: Experiment, rule: str) -> Section | None:
    rows: list[tuple[Cell, ...]] = []
    for group in experiment.groups:
        for domain in (*experiment.domains, "mean"):
            printed = paper_number(experiment, group, domain)
            ours = group.summary(rule, domain) if printed is not None else None
            if printed is None or ours is None:
                continue
            oracle = group.summary("oracle", domain)
            told = oracle.mean if oracle else None
            rows.append((
                group.label, domain, printed, ours.mean, told, ours.n, ours.mean - printed,
            ))  # fmt: skip
    if not rows:
        return None
    columns = ("method", "domain", "paper", f"ours, {rule}", "ours, oracle", "seeds", "difference")
    notes = [NOTE, *_scaled(experiment)]
    digits = {name: 2 for name in columns}
    table = Table("Accuracy (%), the paper's and ours", columns, tuple(rows), digits)
    return Section("Beside the paper", (*map(Text, notes), table))


def paper_number(experiment: Experiment, group: Group, domain: str) -> float | None:
    """What Table 1, 2 or 3 prints for this method, if it is there."""
    method, data = group.method, experiment.data
    if data == "digits" and method in PAPER:
        at_k = method in ("erm", "par") or group.rounds == 3  # Table 1's K
        same = set(experiment.domains) == set(digits.DOMAINS)
        known = same if domain == "mean" else domain in PAPER[method]
        return paper(method, domain) if at_k and known else None
    if data == "pacs" and len(experiment.domains) == 1 and domain in table2.TARGETS:
        rows = {**table2.WITH_LABELS, **table2.WITHOUT_LABELS}
        return rows[method][1][table2.TARGETS.index(domain)] if method in rows else None
    if data in cifar.SETS and domain == "mean" and len(experiment.domains) == 15:
        row = table3.PAPER.get((data, experiment.network), ())
        return dict(zip(cifar.COLUMNS, row, strict=False)).get(method)
    return None


def _scaled(experiment: Experiment) -> Iterator[str]:
    scales = {float(run.record.get("scale", 1.0)) for run in experiment.runs()}
    parts = {run.recipe.get("data", {}).get("per_domain") for run in experiment.runs()} - {None}
    if scales != {1.0} or parts:
        yield "Ours were made at a smaller scale than the paper's: the two do not measure the same."


def sweep(experiment: Experiment, rule: str) -> Section | None:
    """Figure 1: a chart a target, a line a method over K with its range over seeds, ERM across."""
    methods = list(dict.fromkeys(g.method for g in experiment.groups if g.method != "erm"))
    lines = {m: _by_rounds(experiment, m, rule) for m in methods}
    lines = {m: groups for m, groups in lines.items() if len(groups) > 1}
    if not lines:
        return None
    plain = [g for g in experiment.groups if g.method == "erm" and g.scored(rule)]
    most = max(k for groups in lines.values() for k in groups)
    charts: list[Block] = [Text("Accuracy against K, the number of maximisation rounds. Bars span the seeds' range.")]
    for domain in experiment.domains:
        series = [_line(m, g, domain, rule) for m, g in lines.items()]
        if plain and (s := plain[0].summary(rule, domain)):
            ends = (0, most)
            series.append(Series("ERM", (s.mean, s.mean), ends, colour=plain[0].colour, dashed=True))
        title = f"{domain}: accuracy against K (Figure 1)"
        charts.append(Chart("lines", title, tuple(series), "K", "accuracy (%)", small=True))
    return Section("How many rounds", tuple(charts))


def _by_rounds(experiment: Experiment, method: str, rule: str) -> dict[int, Group]:
    """Of groups with the same K, the one with most seeds."""
    found: dict[int, Group] = {}
    for group in experiment.groups:
        if group.method == method and group.scored(rule):
            held = found.get(group.rounds)
            if held is None or len(group.runs) > len(held.runs):
                found[group.rounds] = group
    return dict(sorted(found.items()))


def _line(method: str, groups: dict[int, Group], domain: str, rule: str) -> Series:
    values = [group.values(rule, domain) for group in groups.values()]
    first = next(iter(groups.values()))
    return Series(
        first.label.split(",")[0], tuple(sum(v) / len(v) for v in values), tuple(groups),
        low=tuple(min(v) for v in values), high=tuple(max(v) for v in values),
        colour=COLOURS.get(method, first.colour),
    )  # fmt: skip
