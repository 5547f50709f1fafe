"""The page says what the records say, leaves out what they do not, and trusts no text of theirs."""

import json
import re
import unicodedata
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console
from tests_records import write_run

from meada.corruptions import CORRUPTIONS
from meada.errors import MeadaError
from meada.evaluation.predictions import save_predictions
from meada.evaluation.selection import RULES
from meada.reports import quickstart
from meada.reports.page import build, to_html, to_markdown, write
from meada.reports.page.blocks import Chart, Gallery, Page, Section, Series, Table, Text
from meada.reports.page.groups import experiments
from meada.reports.page.robustness import reliability
from meada.reports.page.text import print_page, print_record
from meada.reports.page.training import amplified, png
from meada.reports.runs import find_runs

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)> \"'`${x}|*_"


def section(page, title) -> Section:
    return next(s for s in page.sections if s.title.startswith(title))


def table(page, title) -> Table:
    return next(b for b in page.blocks() if isinstance(b, Table) and b.title.startswith(title))


def charts(page) -> list[Chart]:
    return [block for block in page.blocks() if isinstance(block, Chart)]


def said(page) -> str:
    return "\n".join(block.text for block in page.blocks() if isinstance(block, Text))


@pytest.fixture
def runs(tmp_path):
    for seed in range(2):
        write_run(tmp_path, "erm", seed=seed, attack=True)
        write_run(tmp_path, "meada", seed=seed, skill=2.0, rounds=3, attack=True)
    return tmp_path


def test_accuracy_is_the_records_with_its_spread(runs):
    page = build(find_runs([runs]))
    found = [json.loads((runs / f"erm-0-{k}" / "record.json").read_text()) for k in (0, 1)]
    values = [record["results"]["last"]["svhn"]["accuracy"] for record in found]
    rows = {row[:2]: row for row in table(page, "Accuracy (%) with 95").rows}
    _, _, mean, std, n, low, high, how = rows["ERM", "svhn"]
    assert mean == pytest.approx(np.mean(values)) and std == pytest.approx(np.std(values, ddof=1))
    assert n == 2 and low < mean < high and how == "Student's t, 2 seeds"
    (bars,) = [c for c in charts(page) if c.title.startswith("Accuracy by domain")]
    assert bars.series[0].y[0] == mean and bars.categories == ("svhn", "usps", "mean")
    gaps = {row[1]: row for row in table(page, "Difference from ERM").rows}
    both = [rows["ME-ADA", d][2] - rows["ERM", d][2] for d in ("svhn", "usps")]
    assert gaps["mean"][2] == pytest.approx(np.mean(both))
    assert all(row[6] >= row[5] for row in gaps.values())  # Holm never lowers a p-value
    assert "One seed" not in said(page)


def test_one_seed_is_warned_of(tmp_path):
    write_run(tmp_path, "erm")
    assert "One seed: ERM. This compares two models, not two methods." in said(build(find_runs([tmp_path])))


def test_the_papers_number_stands_beside_ours(tmp_path):
    for method, rounds in (("erm", 0), ("meada", 3)):
        write_run(tmp_path, method, rounds=rounds, recipe=f"digits/{method}")
    page = build(find_runs([tmp_path]))
    rows = {row[:3]: row for row in table(page, "Accuracy (%), the paper").rows}
    assert rows["ME-ADA", "last", "svhn"][5] == 42.0 and rows["ERM", "oracle", "usps"][5] == 79.92
    assert rows["ERM", "last", "mean"][5] == pytest.approx((31.95 + 79.92) / 2)  # over the same domains
    figure = next(c for c in charts(page) if c.name == "paper-digits-last")
    assert figure.series[0].paper[:2] == (31.95, 79.92)


def test_the_k_sweep_is_figure_1(tmp_path):
    for seed in range(2):
        write_run(tmp_path, "erm", seed=seed, recipe="digits/erm")
        for k in (1, 2, 3):
            write_run(tmp_path, "ada", seed=seed, rounds=k, recipe="digits/ada")
            write_run(tmp_path, "meada", seed=seed, rounds=k, skill=1 + k / 2, recipe="digits/meada")
    page = build(find_runs([tmp_path]))
    figure, *_ = [c for c in charts(page) if "Figure 1" in c.title]
    ada, meada, erm = figure.series
    assert (ada.name, meada.name, erm.name) == ("ADA", "ME-ADA", "ERM")
    assert meada.x == (1, 2, 3) and meada.y[0] < meada.y[1] < meada.y[2]
    assert all(a <= b <= c for a, b, c in zip(meada.low, meada.y, meada.high, strict=True))
    assert erm.dashed and erm.y[0] == erm.y[1]
    labels = {row[2] for row in table(page, "Runs").rows}
    assert {"ADA, K = 1", "ME-ADA, K = 3", "ERM"} <= labels
    rows = table(page, "Accuracy (%), the paper").rows
    assert {row[0] for row in rows} == {"ERM", "ADA, K = 3", "ME-ADA, K = 3"}  # Table 1's K


def test_corruptions_have_severities_a_map_and_figure_2(tmp_path):
    about = {"data": "cifar10", "network": "wideresnet", "severities": 5, "images": 20}
    for method in ("erm", "meada"):
        write_run(tmp_path, method, domains=tuple(CORRUPTIONS), recipe=f"cifar10c/wideresnet-{method}", **about)
    page = build(find_runs([tmp_path]))
    record = json.loads((tmp_path / "erm-0-0" / "record.json").read_text())["results"]["last"]
    (curve,) = [c for c in charts(page) if c.title.startswith("Accuracy by severity")]
    worst = [record[name]["by_severity"]["accuracy"][4] for name in CORRUPTIONS]
    assert curve.series[0].x == (1, 2, 3, 4, 5)
    assert curve.series[0].y[4] == pytest.approx(np.mean(worst))
    heat = [c for c in charts(page) if c.kind == "heat"]
    assert len(heat) == 2 and heat[0].y_range == heat[1].y_range
    fog = next(s for s in heat[0].series if s.name == "fog")
    assert fog.y == tuple(record["fog"]["by_severity"]["accuracy"])
    assert any("Figure 2" in c.title and len(c.categories) == 16 for c in charts(page))
    rows = table(page, "Accuracy (%), the paper").rows
    found = [(row[0], row[2], row[5], row[9]) for row in rows if row[1] == "last"]
    assert found == [("ERM", "mean", 73.1, None), ("ME-ADA", "mean", 83.3, None)]  # printed without an error


def test_a_reliability_diagram_by_hand(tmp_path):
    path = write_run(tmp_path, domains=("svhn",), images=3)
    told = {"svhn": {
        "label": torch.tensor([0, 1, 2], dtype=torch.int16),
        "guess": torch.tensor([0, 0, 2], dtype=torch.int16),
        "confidence": torch.tensor([0.62, 0.68, 1.0]),
    }}  # fmt: skip
    save_predictions(path / "predictions.safetensors", {"last": told}, ())
    (experiment,) = experiments(find_runs([tmp_path]))
    line = reliability(experiment.groups[0], ("svhn",), "last")
    assert line.y == (50.0, 100.0) and line.x == pytest.approx((65.0, 100.0), abs=1e-4)


def test_an_attack_stands_beside_the_clean_accuracy(runs):
    rows = table(build(find_runs([runs])), "Accuracy (%) without and under attack").rows
    assert rows[0] == ("ERM", "svhn", 80.0, 55.5, 20, 2)


def test_training_and_rounds_are_the_logs(runs):
    page = build(find_runs([runs]))
    (loss,) = [c for c in charts(page) if c.title == "Loss"]
    assert loss.series[0].x == (100, 200, 300)
    assert loss.series[0].y == pytest.approx((1.55, 1.05, 0.55))  # of seeds 0 and 1
    assert loss.series[0].low == pytest.approx((1.5, 1.0, 0.5))
    assert loss.marks == ((50, "round 1"), (100, "round 2"), (150, "round 3"))
    rounds = table(page, "Maximisation rounds").rows
    assert rounds[0] == ("ME-ADA", 0, 1, 50, 120, 0.2, 0.5, 0.3, 0.6, 4.0, 0.3 * 255, 2.5)
    assert "ME-ADA, seed 0: round 2 did nothing." in said(page)


def test_the_gallery_has_labels_and_predictions(runs):
    found = [b for b in build(find_runs([runs])).blocks() if isinstance(b, Gallery)]
    assert [g.title for g in found] == [f"ME-ADA, seed 0, round {k}" for k in (1, 2, 3)]
    first = found[0].pictures[0]
    assert first.captions[:2] == ("cat, predicted cat", "cat, predicted dog")


def test_an_amplified_difference_stays_around_grey():
    gain, shown = amplified(torch.full((1, 2, 2), -0.05))
    assert gain == pytest.approx(10) and torch.allclose(shown, torch.zeros(1, 2, 2))
    assert torch.equal(amplified(torch.zeros(1, 2, 2))[1], torch.full((1, 2, 2), 0.5))
    from io import BytesIO

    image = torch.zeros(3, 2, 2)
    image[0] = 1.0
    assert np.array(Image.open(BytesIO(png(image)))).tolist() == [[[255, 0, 0]] * 2] * 2
    assert Image.open(BytesIO(png(torch.rand(3, 300, 150)))).size == (64, 128)


def test_compute_and_the_choice_of_checkpoints(runs, tmp_path):
    page = build(find_runs([runs]))
    row = next(r for r in table(page, "Compute").rows if r[0] == "ME-ADA")
    assert row[:6] == ("ME-ADA", 0, 300, 4800, 420, 2100) and row[9] == 8.5
    assert "unequal" not in said(page)
    rules = [r[1] for r in table(page, "Accuracy (%) of each rule's").rows if r[0] == "ERM"]
    assert rules == ["last", "source_val", "crafted", "oracle"]
    write_run(runs, "mixup", steps=900)
    assert "budgets are unequal" in said(build(find_runs([runs])))


def test_what_is_missing_is_said_in_a_line(tmp_path):
    write_run(tmp_path, predictions=False)
    text = said(build(find_runs([tmp_path])))
    assert (
        "Without reliability diagrams, for lack of predictions: ERM, seeds 0" in text
        and "meada evaluate RUN --pgd" in text
    )
    assert "No Figure 1" in text and "No severities" in text and "No pictures" in text


def test_an_unfinished_run_shows_its_training_alone(tmp_path):
    write_run(tmp_path, "meada", rounds=2, finished=False)
    page = build(find_runs([tmp_path]))
    assert "Not finished, so without results: meada-2-0." in said(page)
    assert any(c.title == "Loss" for c in charts(page)) and to_html(page)


def test_the_same_run_twice_counts_once(tmp_path):
    write_run(tmp_path, name="one")
    write_run(tmp_path, name="two")
    page = build(find_runs([tmp_path, tmp_path / "one"]))
    assert "two repeats one and is left out." in said(page)
    assert table(page, "Accuracy (%) with 95").rows[0][4] == 1


def test_folders_without_runs_and_broken_files_are_refused(tmp_path):
    with pytest.raises(MeadaError, match="nowhere must hold a run"):
        find_runs([tmp_path / "nowhere"])
    path = write_run(tmp_path)
    with pytest.raises(MeadaError, match="unknown rule 'best'"):
        build(find_runs([path]), rule="best")
    (path / "record.json").write_text('{"recipe": 1}')
    with pytest.raises(MeadaError, match="must be the record of a run, got no method, results, seed"):
        find_runs([path])
    (path / "record.json").write_text("{")
    with pytest.raises(MeadaError, match="is not JSON"):
        find_runs([path])


class Tags(HTMLParser):
    """Every element that begins, with its attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []

    def handle_data(self, data):
        self.texts.append(data)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def test_text_from_records_is_never_markup(tmp_path):
    about = {"note": HOSTILE, "network": HOSTILE, "domains": (HOSTILE, "usps"), "name": "r"}
    write_run(tmp_path, HOSTILE, classes=(HOSTILE, "b", "c"), rounds=1, attack=True, **about)
    html = to_html(build(find_runs([tmp_path]), title=HOSTILE))
    tags = Tags()
    tags.feed(html)
    names = [tag for tag, _ in tags.found]
    assert names.count("script") == 1 and names.count("title") == 1
    assert not [a for _, attrs in tags.found for a in attrs if a.startswith("on")]
    assert {a["src"][:15] for tag, a in tags.found if tag == "img"} == {"data:image/png;"}
    shown = [HOSTILE.split(">")[0] in text for text in tags.texts]
    assert any(shown)  # as text, inside a chart too
    text = to_markdown(build(find_runs([tmp_path])), {}, tmp_path)
    assert "<script" not in text and "<img" not in text


@pytest.mark.parametrize("render", [to_html, lambda page: to_markdown(page, {}, Path())])
def test_a_page_carries_no_control_characters_of_names(render):
    """Escape sequences and marks that turn the direction of writing, in every kind of block."""
    name = "\x1b[31mred\u202ederutrot\x07"
    chart = Chart("bars", name, (Series(name, (1.0,)),), name, name, (name,))
    blocks = (Text(f"{name} **{name}**"), Table(name, (name,), ((name,),)), chart)
    text = render(Page(name, (Section(name, blocks),)))
    assert "red" in text and not {c for c in text if unicodedata.category(c) in ("Cc", "Cf")} - {"\n", "\t"}


def test_nothing_is_fetched_from_anywhere(runs):
    html = to_html(build(find_runs([runs])))
    assert "default-src 'none'" in html
    for address in re.findall(r"(?:src|href)=\"([^\"]*)\"", html):
        assert address.startswith(("data:", "#"))
    spaces = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert {*re.findall(r"https?://[^\"' ]+", html)} == spaces
    assert not re.search(r"@import|url\((?!#)|fetch\(|XMLHttpRequest|WebSocket", html)


def test_every_chart_has_words_and_numbers(runs):
    page = build(find_runs([runs]))
    html = to_html(page)
    tags = Tags()
    tags.feed(html)
    plots = [a for _, a in tags.found if a.get("class") == "plot"]
    assert len(plots) == len(charts(page)) > 5
    assert all(a["role"] == "img" and len(a["aria-label"]) > 20 for a in plots)
    assert html.count("<summary>The numbers</summary>") == len(plots) == html.count("<svg ")
    ids = [a["id"] for _, a in tags.found if "id" in a]
    assert len(ids) == len(set(ids))  # a chart's clip paths and markers are its own
    assert html.count('class="csv"') == html.count("<table>")


def test_markdown_and_pictures_hold_the_same(runs, tmp_path):
    page = build(find_runs([runs]))
    files = write(page, out=tmp_path / "r.html", markdown=tmp_path / "r.md", png=tmp_path / "drawn")
    drawn = [b for b in page.blocks() if isinstance(b, Chart | Gallery)]
    assert len(files) == 2 + len(drawn) and all(f.stat().st_size > 500 for f in files)
    text = (tmp_path / "r.md").read_text()
    assert text.count("](drawn/") == len(drawn)
    mean = table(page, "Accuracy (%) with 95").rows[0][2]
    assert f"| ERM | svhn | {mean:.2f} |" in text


def test_the_terminal_shows_the_same_numbers(runs):
    from io import StringIO

    from rich.console import Console

    page = build(find_runs([runs]))
    screen = StringIO()
    print_page(page, Console(file=screen, width=200))
    mean = table(page, "Accuracy (%) with 95").rows[0][2]
    assert f"{mean:.2f}" in screen.getvalue() and "Calibration" in screen.getvalue()


def test_titles_and_descriptions_are_the_methods_own(tmp_path, monkeypatch):
    from meada.methods import METHODS, Method

    monkeypatch.setitem(METHODS, "made-up", lambda: Method(title="My method", about="It does nothing."))
    write_run(tmp_path, "made-up")
    page = build(find_runs([tmp_path]))
    assert table(page, "Runs").rows[0][2] == "My method" and "My method: It does nothing (seed 0)" in said(page)


def test_reports_load_neither_the_code_of_a_run_nor_its_data_sets():
    """By their own imports; and nothing of a run's machinery comes along."""
    import ast
    import subprocess
    import sys
    from pathlib import Path

    import meada.reports

    home = Path(meada.reports.__file__).parent
    for path in home.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            name = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            assert name != "meada.runs.run" and not name.startswith("meada.datasets"), path
    code = "import sys, meada.reports.live, meada.reports.inspect; print('meada.runs.run' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"


def printed(domains: dict[str, float]) -> list[str]:
    rules = [rule for rule in RULES if rule not in ("averaged", "calibrated")]  # others are asked for
    results = {rule: {name: {"accuracy": value + k} for name, value in domains.items()} for k, rule in enumerate(rules)}
    seconds = {"minimise": 61.7, "maximise": 0.0}
    record = {"recipe": "r", "seed": 3, "results": results, "seconds": seconds, "steps": 1380}
    screen = StringIO()
    print_record(record, Path("runs/a"), Console(file=screen, width=80))
    return screen.getvalue().splitlines()


def test_fifteen_domains_and_four_rules_fit_a_terminal():
    lines = printed({name: 50.0 + k for k, name in enumerate(CORRUPTIONS)})
    assert max(map(len, lines)) <= 80 and not any("…" in line for line in lines)
    numbers = {line.split()[1]: line.split()[3::2] for line in lines if line.startswith("│")}
    assert numbers["gaussian_noise"] == ["50.0", "51.0", "52.0", "53.0"]
    assert numbers["mean"] == ["57.0", "58.0", "59.0", "60.0"]
    assert "  oracle      the best on the targets themselves, as the published code does" in lines
    assert "1,380 steps; minimise 62 s, maximise 0 s. Record: runs/a/record.json" in lines


def test_a_run_that_meets_no_domain_prints_too():
    assert any("source_val" in line for line in printed({}))


def test_the_page_opens_with_what_was_asked_of_the_networks(tmp_path, capsys):
    folders = {m: write_run(tmp_path, m, rounds=2 * (m != "erm"), data="embedded") for m in ("erm", "meada", "tilted")}
    shown = {"training": torch.rand(3, 3, 8, 8), "svhn": torch.rand(3, 3, 8, 8)}
    views = {"training": torch.rand(3, 3, 8, 8), "view 1": torch.rand(3, 3, 8, 8)}
    quickstart.show(folders, tmp_path, shown, views)
    html = (tmp_path / "report.html").read_text()
    assert "<h1>Classifying digits of a style not seen in training</h1>" in html
    assert html.index("trained on 60 handwritten digits") < html.index("What was run</h2>")
    assert "Samples of each round" in html and "One seed: differences of a point" in html
    assert {"domains.png", "accuracy.png", "adversarial.png", "views.png"} <= {p.name for p in tmp_path.iterdir()}
    printed = capsys.readouterr().out
    assert "report.html" in printed.replace("\n", "") and "ME-ADA" in printed
