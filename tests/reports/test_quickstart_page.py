"""The quickstart's page is the report, with a word and a picture of the domains before it."""

from tests_records import write_run

from meada.reports import pictures, quickstart


def test_the_page_opens_with_what_was_asked_of_the_networks(tmp_path, monkeypatch, capsys):
    from matplotlib.figure import Figure

    monkeypatch.setattr(pictures, "domains", lambda data: Figure())
    recipe = type("Recipe", (), {"data": {"train": 1000}, "seed": 0})
    monkeypatch.setattr(quickstart.RunFolder, "load_recipe", lambda folder: recipe)
    folders = {m: write_run(tmp_path, m, rounds=2 * (m != "erm"), data="embedded") for m in ("erm", "ada", "meada")}
    quickstart.show(folders, tmp_path)
    html = (tmp_path / "report.html").read_text()
    assert "<h1>Reading digits of a kind never seen</h1>" in html
    assert html.index("learnt to read 1,000 handwritten digits") < html.index("What was run</h2>")
    assert "What the rounds made" in html and "One seed: differences of a point" in html
    assert {"domains.png", "accuracy.png", "adversarial.png"} <= {p.name for p in tmp_path.iterdir()}
    assert "report.html" in capsys.readouterr().out.replace("\n", "")
