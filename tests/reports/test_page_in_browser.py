"""The page in a real browser: Debian's chromium, headless; skipped where it is not installed."""

import pytest
from tests_browser import CHROMIUM, browsing
from tests_records import write_run

from meada.corruptions import CORRUPTIONS
from meada.reports.page import build, to_html
from meada.reports.runs import find_runs

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (apt install chromium)")

CONTRAST = """(() => {
  const parts = (c) => c.match(/[\\d.]+/g).map(Number);
  const light = (c) => {
    const [r, g, b] = parts(c).map((v) => v / 255)
      .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (node) => {
    for (; node; node = node.parentElement) {
      const c = getComputedStyle(node).backgroundColor;
      if (parts(c).length < 4 || parts(c)[3] > 0) return c;
    }
    return "rgb(255, 255, 255)";
  };
  const ratio = (a, b) => {
    const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
  };
  const found = [];
  const texts = "h1, h2, p, th button, td, a, summary, figcaption, .csv, .legend span";
  for (const node of document.querySelectorAll(texts)) {
    found.push([node.tagName, ratio(getComputedStyle(node).color, ground(node))]);
  }
  for (const node of document.querySelectorAll("svg text")) {
    const ink = getComputedStyle(node).fill;
    if (ink === "rgb(255, 255, 255)" || ink === "rgb(0, 0, 1)") continue; // on a cell of its own colour
    found.push(["svg text", ratio(ink, ground(node.closest("div")))]);
  }
  for (const node of document.querySelectorAll(".plot svg path[clip-path]")) {
    const colour = getComputedStyle(node).stroke;
    if (colour !== "none" && Number(getComputedStyle(node).strokeOpacity) === 1) {
      found.push(["mark", 1.5 * ratio(colour, ground(node.closest("div")))]);
    }
  }
  return found;
})()"""  # 4.5 for text; a drawn mark needs 3, so that times 1.5 it is held to the same


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    out = tmp_path_factory.mktemp("page")
    for seed in range(2):
        write_run(out, "erm", seed=seed, attack=True, note="a note " * 30)
        for k in (1, 2):
            write_run(out, "meada", seed=seed, skill=2.0, rounds=k, attack=True)
    about = {"data": "cifar10", "network": "wideresnet", "severities": 5, "images": 6}
    for method, skill in (("erm", 0.5), ("meada", 2.0)):
        domains = tuple(CORRUPTIONS)
        write_run(out, method, skill=skill, domains=domains, name=f"c-{method}", **about)
    (out / "report.html").write_text(to_html(build(find_runs([out]))))
    return out / "report.html"


@pytest.fixture(scope="module")
def browser():
    with browsing() as one:
        yield one


@pytest.mark.parametrize("width", [1100, 360])
@pytest.mark.parametrize("dark", [False, True])
def test_it_is_drawn_without_complaint_or_request(page, browser, width, dark):
    browser.open(page, width=width, dark=dark)
    assert browser.complaints() == []
    assert browser.requests() == [page.as_uri()]
    drawn = browser.run("[...document.querySelectorAll('.plot svg')].map(p => p.getBoundingClientRect().height)")
    assert len(drawn) > 10 and min(drawn) > 100
    shown = browser.run("[...document.images].map(i => i.naturalWidth)")
    assert shown and min(shown) > 0


@pytest.mark.parametrize("width", [360, 1100])
def test_nothing_sticks_out_sideways(page, browser, width):
    browser.open(page, width=width)
    assert browser.run("innerWidth") == width
    assert browser.run("document.documentElement.scrollWidth") == width
    wide = browser.run("[...document.querySelectorAll('.scroll')].some(b => b.scrollWidth > b.clientWidth)")
    assert wide or width > 360  # a wide table scrolls in its own box
    cut = browser.run("""[...document.querySelectorAll('svg text')].filter(t => {
        const [a, b] = [t.getBoundingClientRect(), t.closest('svg').getBoundingClientRect()];
        return a.left < b.left - 2 || a.right > b.right + 2;
    }).map(t => t.textContent)""")
    assert cut == []


@pytest.mark.parametrize("dark", [False, True])
def test_text_is_legible(page, browser, dark):
    browser.open(page, dark=dark)
    ground = browser.run("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(20, 23, 27)" if dark else "rgb(255, 255, 255)")
    found = browser.run(CONTRAST)
    assert {"mark", "svg text"} < {name for name, _ in found} and len(found) > 500
    assert [(name, ratio) for name, ratio in found if ratio < 4.5] == []


def test_tables_sort_both_ways_by_number(page, browser):
    browser.open(page)
    column = """(() => {
        const table = [...document.querySelectorAll('table')].find(t =>
            [...t.tHead.rows[0].cells].some(c => c.textContent === 'difference'));
        const i = [...table.tHead.rows[0].cells].findIndex(c => c.textContent === 'difference');
        window.head = table.tHead.rows[0].cells[i];
        return [...table.tBodies[0].rows].map(r => Number(r.cells[i].dataset.value));
    })()"""
    before = browser.run(column)
    browser.run("head.querySelector('button').click()")
    assert browser.run(column) == sorted(before) != before
    assert browser.run("head.getAttribute('aria-sort')") == "ascending"
    browser.run("head.querySelector('button').click()")
    assert browser.run(column) == sorted(before, reverse=True)
    assert browser.run("head.getAttribute('aria-sort')") == "descending"


def test_every_table_is_a_csv_file(page, browser):
    browser.open(page)
    files = browser.run("""(async () => {
        const kept = [];
        URL.createObjectURL = (blob) => (kept.push(blob), '#');
        HTMLAnchorElement.prototype.click = () => {};
        document.querySelectorAll('.csv').forEach(b => b.click());
        return Promise.all(kept.map(b => b.text()));
    })()""")
    assert len(files) == browser.run("document.querySelectorAll('table').length") > 10
    runs = files[0].splitlines()
    assert runs[0] == "folder,recipe,method,network,data,seed,K,steps,finished"
    assert "erm-0-0,digits/erm,ERM,lenet,digits,0,0,300,yes" in runs
    assert browser.complaints() == []


def test_it_prints_on_white_without_what_only_a_screen_can_use(page, browser):
    browser.open(page, dark=True)
    browser.ask("Emulation.setEmulatedMedia", media="print", features=[])
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.run("getComputedStyle(document.querySelector('nav')).display") == "none"
    browser.ask("Emulation.setEmulatedMedia", media="", features=[])
