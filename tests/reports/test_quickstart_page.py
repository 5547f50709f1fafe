"""The quickstart's page is the report, with a word and a picture of the domains before it."""

import torch
from tests_records import write_run

from meada.reports import quickstart


def test_the_page_opens_with_what_was_asked_of_the_networks(tmp_path, capsys):
    folders = {m: write_run(tmp_path, m, rounds=2 * (m != "erm"), data="embedded") for m in ("erm", "meada", "tilted")}
    shown = {"training": torch.rand(3, 3, 8, 8), "svhn": torch.rand(3, 3, 8, 8)}
    views = {"training": torch.rand(3, 3, 8, 8), "view 1": torch.rand(3, 3, 8, 8)}
    quickstart.show(folders, tmp_path, shown, views)
    html = (tmp_path / "report.html").read_text()
    assert "<h1>Classifying digits of a style not seen in training</h1>" in html
    assert html.index("trained on 60 handwritten digits") < html.index("What was run</h2>")
    assert "What the rounds made" in html and "One seed: differences of a point" in html
    assert {"domains.png", "accuracy.png", "adversarial.png", "views.png"} <= {p.name for p in tmp_path.iterdir()}
    printed = capsys.readouterr().out
    assert "report.html" in printed.replace("\n", "") and "ME-ADA" in printed
