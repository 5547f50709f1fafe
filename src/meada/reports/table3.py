"""Table 3 from finished runs: accuracy under fifteen corruptions, beside the paper's."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from statistics import mean

from meada.errors import MeadaError, nearest
from meada.evaluation.selection import KNOWS, RULES
from meada.evaluation.statistics import summarise
from meada.files import write_text
from meada.reports.cifar import COLUMNS, Cell, Row, gather, title
from meada.reports.figure2 import METHODS, figure2
from meada.reports.pictures import save
from meada.reports.runs import Run
from meada.reports.text import SAME_BITS, head, line, machine, spread

PAPER = {  # Table 3, in the order of COLUMNS
    ("cifar10", "allconv"): (69.2, 67.1, 68.7, 70.8, 75.4, 71.9, 73.0, 78.2),
    ("cifar10", "densenet"): (69.3, 67.9, 66.5, 73.4, 75.4, 72.4, 69.8, 76.9),
    ("cifar10", "wideresnet"): (73.1, 73.2, 72.9, 76.1, 77.7, 73.8, 79.7, 83.3),
    ("cifar10", "resnext"): (72.5, 71.1, 70.5, 75.8, 77.4, 73.0, 78.0, 83.4),
    ("cifar100", "allconv"): (43.6, 43.2, 44.0, 44.9, 46.6, 44.0, 45.3, 51.2),
    ("cifar100", "densenet"): (40.7, 40.4, 40.8, 46.1, 44.6, 44.8, 45.2, 47.8),
    ("cifar100", "wideresnet"): (46.7, 46.5, 47.1, 50.4, 49.6, 44.9, 50.4, 52.8),
    ("cifar100", "resnext"): (46.6, 45.4, 45.9, 48.7, 48.6, 45.6, 53.4, 57.3),
}
NOTE = """Ours: mean over the fifteen corruptions and five severities, in per cent, and its spread
(standard deviation) over n seeds. In brackets: the paper, whose checkpoints were chosen on the
corruptions themselves, and whose beta and gamma were chosen for each network (oracle)."""
Table = Mapping[Row, Mapping[str, Cell]]


def page(runs: Iterable[Run], rule: str = "last") -> str:
    """Table 3 in Markdown, then clean accuracy, calibration, Figure 2 and each record's command."""
    return _page(_gathered(runs, rule), rule)


def write(runs: Iterable[Run], path: Path, rule: str = "last") -> None:
    """The page at ``path``, and its figures in ``figures`` beside it."""
    table = _gathered(runs, rule)
    write_text(path, _page(table, rule))
    for name, row, cells in _drawn(table):
        save(figure2(row, cells, rule), path.parent / name)


def _gathered(runs: Iterable[Run], rule: str) -> Table:
    if rule not in RULES:
        raise MeadaError(f"unknown rule '{rule}': {nearest(rule, RULES)}")
    return gather(runs)


def _page(table: Table, rule: str) -> str:
    text = ["# CIFAR under corruptions", "\n".join(markdown(table, rule))]
    text += [f"## {name}\n\n" + "\n".join(lines) for name, lines in _parts(table, rule)]
    return "\n\n".join(text) + "\n"


def markdown(table: Table, rule: str) -> list[str]:
    """A row a network, a column a method."""
    methods = [*COLUMNS, *sorted({m for row in table.values() for m in row} - COLUMNS.keys())]
    return [
        f"## Table 3\n\nCheckpoint: {KNOWS[rule]}.\n",
        *head("", *map(title, methods)),
        *(line(str(row), *_values(row, cells, methods, rule)) for row, cells in table.items()),
        "",
        NOTE,
        *(f"{row}: corruptions {row.corruptions}." for row in table),
        *(f"({mark}): {what}." for mark, what in sorted({(r.mark, r.otherwise) for r in table}) if mark),
    ]


def _parts(table: Table, rule: str) -> Iterator[tuple[str, list[str]]]:
    yield "Clean, corrupted, calibrated", _scores(table)
    if drawn := [f"![{row}]({name})" for name, row, _ in _drawn(table)]:
        yield "Figure 2", drawn
    yield "Records", _records(table)


def _values(row: Row, cells: Mapping[str, Cell], methods: list[str], rule: str) -> list[str]:
    known = () if row.otherwise else PAPER.get((row.data, row.network), ())
    paper = dict(zip(COLUMNS, known, strict=False))
    texts = []
    for method in methods:
        ours = _spread(cells[method].values(rule)) if method in cells else "-"
        texts.append(f"{ours} ({paper[method]})" if method in paper else ours)
    return texts


def _spread(values: list[float]) -> str:
    return f"{spread(summarise(values), 1)}, n={len(values)}"


def _scores(table: Table) -> list[str]:
    """A line a cell and rule: clean accuracy, then means over the fifteen corruptions."""
    lines = head("", "method", "checkpoint chosen by", "clean (%)", "corrupted (%)", "ECE",
                 "NLL (nats)", "Brier")  # fmt: skip
    for row, cells in table.items():
        for method, cell in cells.items():
            for rule in (rule for rule in RULES if cell.runs[0].results(rule)):
                scores = [f"{mean(cell.values(rule, s)):.3f}" for s in ("ece", "nll", "brier")]
                numbers = [f"{cell.clean(rule):.1f}", f"{mean(cell.values(rule)):.1f}", *scores]
                lines.append(line(str(row), title(method), rule, *numbers))
    return lines


def _drawn(table: Table) -> Iterator[tuple[str, Row, Mapping[str, Cell]]]:
    """Figure 2 of each row that has both its methods, and the file it is in."""
    both = [(row, cells) for row, cells in table.items() if set(METHODS) <= cells.keys()]
    for number, (row, cells) in enumerate(both, 1):
        yield f"figures/figure2-{number}.png", row, cells


def _records(table: Table) -> list[str]:
    """Every run: its length, what it cost, and how to make it again."""
    lines = head("what", "steps", "minutes", "on", "command")
    for run in (run for cells in table.values() for cell in cells.values() for run in cell.runs):
        record = run.record
        minutes = f"{sum(record['seconds'].values()) / 60:.0f}"
        lines.append(
            line(record["note"], f"{record['steps']:,}", minutes, machine(record["environment"]),
                 f"`{run.command}`")
        )  # fmt: skip
    return [*lines, "", SAME_BITS]
