"""The accuracies in README.md and on the page about choosing a method, worked out from the records alone."""

import json
import tomllib
from pathlib import Path
from statistics import mean, stdev

import pytest
from benchmarks.choices import summary
from benchmarks.hardness import verdict

from meada.robustify.outcome import Outcome

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "docs" / "how-to" / "choose_a_method.md"]
README = " ".join(" ".join(page.read_text() for page in PAGES).split())


def records(pattern):
    paths = sorted((ROOT / "results").glob(f"{pattern}/record.json"))
    assert paths, f"no record matches results/{pattern}"
    return [
        json.loads(path.read_text()) | {"settings": tomllib.loads((path.parent / "recipe.toml").read_text())}
        for path in paths
    ]


def over_targets(record, rule, score="accuracy"):
    return mean(scores[score] for scores in record["results"][rule].values())


def told(values, digits):
    spread = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{mean(values):.{digits}f}{spread}"


@pytest.mark.parametrize(
    ("title", "name", "paper", "steps"),
    [
        ("ERM", "erm", "55.9", 10_000),
        ("PAR", "par", "59.1", 10_000),
        ("ADA", "ada", "58.3", 10_000),
        ("ME-ADA", "meada", "61.7", 10_000),
        ("ME-ADA on a Bayesian network (temperature 1e-3)", "meada-bnn", "62.3", 10_000),
        ("noise as large as ME-ADA's", "noise", "-", 10_000),
        ("RandConv", "randconv", "-", 10_000),
        ("PRIME", "prime", "-", 10_000),
        ("tilted: hard views from `wide`", "tilted", "-", 10_000),
        ("tilted: random views, consistency 3", "tilted-random", "-", 10_000),
        ("tilted: random views from `deep`, consistency 3", "tilted-deep", "-", 10_000),
        ("the same for 80,000 steps, in bf16", "tilted-deep", "-", 80_000),
    ],
)
def test_the_table_of_digits(title, name, paper, steps):
    runs = [record for record in records(f"digits/digits-{name}-seed*") if as_shipped(record, steps)]
    accuracy = {rule: [over_targets(r, rule) for r in runs] for rule in ("oracle", "last")}
    ece, nll = (mean(over_targets(r, "last", score) for r in runs) for score in ("ece", "nll"))
    cells = [title, len(runs), told(accuracy["oracle"], 1), paper, told(accuracy["last"], 1)]
    row = " | ".join(map(str, [*cells, f"{ece:.3f}", f"{nll:.2f}"]))
    assert f"| {row} |" in README


def as_shipped(record, steps=10_000):
    """Neither another K nor another way of looking at the targets nor another length."""
    settings = record["settings"]
    rounds = 0 if settings["method"]["name"] in ("tilted", "randconv", "prime") else 3
    plan, subset = settings["plan"], settings["evaluation"]["subset"]
    return plan["rounds"] == rounds and subset == 600 and plan["total_steps"] == steps


def test_the_quickstart():
    for title, name in [("ERM", "erm"), ("ME-ADA", "meada"), ("Tilted", "tilted")]:
        runs = records(f"quickstart/quickstart-{name}-seed?")
        assert len(runs) == 5
        listed = " | ".join(f"{over_targets(record, 'last'):.1f}" for record in runs)
        assert f"| {title} | {listed} |" in README


@pytest.mark.parametrize(
    ("plain", "hardened", "label"),
    [
        ("digits/digits-erm-seed*", "digits/digits-meada-seed*", "ME-ADA"),
        ("digits/digits-erm-seed*", "digits/digits-tilted-deep-seed*", "random views from `deep`"),
        ("quickstart/quickstart-erm-seed?", "quickstart/quickstart-meada-seed?", "ME-ADA"),
        ("quickstart/quickstart-erm-seed?", "quickstart/quickstart-tilted-seed?", "tilted"),
        ("cifar10c-small/*-erm-seed*", "cifar10c-small/*-augmix-seed*", "AugMix"),
        ("cifar10c-small/*-erm-seed*", "cifar10c-small/*-meada-seed*", "ME-ADA"),
        ("cifar10c-small/*-erm-seed*", "cifar10c-small/*-tilted-random-seed?-????????", "random views"),
    ],
)
def test_the_first_table(plain, hardened, label):
    kept = [[r for r in records(name) if "digits/" not in name or as_shipped(r)] for name in (plain, hardened)]
    counts = [str(len(runs)) for runs in kept]
    n = " and ".join(counts) if counts[0] != counts[1] else counts[0]
    means = [f"{mean(over_targets(r, 'last') for r in runs):.1f}" for runs in kept]
    assert f"| {means[0]} | {means[1]} ({label}) | {n} |" in (ROOT / "README.md").read_text()


def test_the_longest_run_on_digits():
    plain, (long,) = ([r for r in records(f"digits/digits-{name}-seed*") if as_shipped(r, steps)]
                      for name, steps in (("erm", 10_000), ("tilted-deep", 80_000)))  # fmt: skip
    means = [f"{mean(over_targets(r, 'last') for r in runs):.1f}" for runs in (plain, [long])]
    counts = f"{len(plain)} and 1"
    assert f"| {means[0]} | {means[1]} (the same, 80,000 steps) | {counts} |" in (ROOT / "README.md").read_text()
    by_domain = " and ".join(f"{long['results']['last'][name]['accuracy']:.1f}" for name in ("mnist_m", "usps"))
    assert f"SVHN {long['results']['last']['svhn']['accuracy']:.1f}, MNIST-M and USPS {by_domain}" in README


def test_readme_is_short():
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 145 and max(map(len, lines)) <= 140


def test_pacs():
    for record in records("pacs/pacs-*-sketch-small-seed0"):
        title = {"epi-fcr": "Epi-FCR", "meada": "ME-ADA", "metareg": "MetaReg", "fusion": "Fusion"}
        name = title.get(record["method"], record["method"].upper())
        assert f"| {name} | {over_targets(record, 'last'):.1f} |" in README


def cifar(name):
    """Records with photographs of frost; those of methods that have none with a texture in their place."""
    runs = [r for r in records(f"cifar10c-small/*-{name}-seed*") if r["settings"]["method"].get("consistency") != 0]
    photographs = [r for r in runs if "photographs" in r["provenance"]["corruptions"]]
    return photographs or runs, "" if photographs else " (frost: a texture)"


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("ERM", "erm"),
        ("Cutout", "cutout"),
        ("CutMix", "cutmix"),
        ("AutoAugment", "autoaugment"),
        ("Mixup", "mixup"),
        ("ADA", "ada"),
        ("AdvTrain", "advtrain"),
        ("ME-ADA", "meada"),
        ("AugMix", "augmix"),
        ("tilted: random views from `wide`, consistency 3 (2,500 steps)", "tilted-random"),
        ("ERM for as many epochs as ME-ADA (600 steps)", "erm-epochs"),
    ],
)
def test_cifar(title, name):
    runs, frost = cifar(name)
    corrupted = mean(over_targets(r, "last") for r in runs)
    clean = mean(r["clean"]["last"]["accuracy"] for r in runs)
    assert f"| {title}{frost} | {len(runs)} | {corrupted:.1f} | {clean:.1f} |" in README


def test_cifar_in_words():
    (views, _), (augmix, _), (erm, _) = (cifar(name) for name in ("tilted-random", "augmix", "erm"))
    of = lambda runs, score="accuracy": mean(over_targets(r, "last", score) for r in runs)
    clean = [mean(r["clean"]["last"]["accuracy"] for r in runs) for runs in (views, augmix)]
    above = f"{of(views) - of(augmix):.1f} points above AugMix under corruptions and {clean[0] - clean[1]:.1f} on clean"
    eces = [f"{of(runs, 'ece'):.3f}" for runs in (views, augmix, erm)]
    assert above in README and f"error is {eces[0]}, AugMix's {eces[1]} and ERM's {eces[2]}" in README


def test_time_to_accuracy():
    seconds = json.loads((ROOT / "benchmarks" / "time_to_accuracy.json").read_text())["seconds_to_target"]
    said = {name: f"{value:,.0f}" for name, value in seconds.items()}
    own = f"the published loop {said['published']}, `meada` {said['meada']}, `tilted` {said['tilted']}"
    assert f"{own}, random views from `wide` {said['tilted-random']}, `randconv` {said['randconv']}." in README
    assert 30 * seconds["tilted"] <= seconds["published"]


def test_the_choices_at_equal_steps():
    page = (ROOT / "docs" / "decisions" / "0084-views-on-digits.md").read_text()
    held = json.loads((ROOT / "benchmarks" / "choices.json").read_text())
    assert held["summary"] == summary(held["runs"])
    for name, row in held["summary"].items():
        spread = f" ({row['low']:+.2f} to {row['high']:+.2f})" if "low" in row else ""
        gap = f"{row['minus_random']:+.2f}{spread}" if "minus_random" in row else "-"
        cells = [name, row["n"], f"{row['seconds']:.0f}", *(f"{row[key]:.1f}" for key in ("held_out", "shifted")), gap]
        assert f"| {' | '.join(map(str, cells))} | {row['tests']:.1f} |" in page


def test_the_recipe_on_photographs():
    plain, views = (records(f"pacs-photo/pacs-photo-{name}-seed*") for name in ("erm", "tilted-random"))
    accuracy, ece = ([mean(over_targets(r, "last", score) for r in runs) for runs in (views, plain)]
                     for score in ("accuracy", "ece"))  # fmt: skip
    assert f"stands at {accuracy[0]:.1f} over the three styles and plain fine-tuning at {accuracy[1]:.1f}" in README
    assert f"error of {ece[0]:.3f} is above the {ece[1]:.3f} of plain" in README and len(plain) == len(views) == 3
    calibrated = mean(over_targets(r, "calibrated", "ece") for r in views)
    assert f"and {calibrated:.3f} with a temperature fitted on views" in README


def test_the_first_table_has_the_photographs():
    runs = outcomes("pacs-photo-seed*")
    of = [[run["candidates"][name or run["delivered"]] for run in runs] for name in ("plain", "")]
    unseen = [mean(t["accuracy"] for one in each for t in one["tests"].values()) for each in of]
    corrupted = [mean(one["corruptions"]["mean"] for one in each) for each in of]
    for plain, hardened in (unseen, corrupted):
        row = f"| {plain:.1f} | {hardened:.1f} (`robustify`) | {len(runs)} |"
        assert row in (ROOT / "README.md").read_text()


def outcomes(pattern):
    return [json.loads(p.read_text()) for p in sorted((ROOT / "results" / "robustify").glob(f"{pattern}/outcome.json"))]


REPEAT = "plain, in another order of batches"


@pytest.mark.parametrize(
    "data, titles",
    [
        ("pacs-photo", {"plain": "plain", "": "delivered: hardened, hardened, averaged"}),
        (
            "fruit",
            {
                "plain": "plain",
                "probe": "probe: head alone",
                "hardened": "hardened",
                "": "delivered: interpolated, interpolated, interpolated",
            },
        ),
        (
            "solar-mono-poly",
            {"plain": "plain", "plain_repeat": REPEAT, "hardened": "hardened", "": "delivered: plain, plain, plain"},
        ),
        (
            "solar-poly-mono",
            {
                "plain": "plain",
                "plain_repeat": REPEAT,
                "hardened": "hardened",
                "": "delivered: plain, hardened, hardened",
            },
        ),
        ("cifar", {"plain": "plain", "plain_repeat": REPEAT, "": "delivered: averaged, hardened, averaged"}),
    ],
)
def test_robustify(data, titles):
    """Means over seeds: held out, corruptions, then every test folder; the empty name is what was delivered."""
    runs = outcomes(f"{data}-seed*")
    chosen = ", ".join(run["delivered"] for run in runs)
    assert titles[""] == f"delivered: {chosen}"
    for name, title in titles.items():
        each = [run["candidates"][name or run["delivered"]] for run in runs]
        values = [mean(one["held_out"]["accuracy"] for one in each), mean(one["corruptions"]["mean"] for one in each)]
        tests = [[one["tests"][test] for one in each] for test in each[0]["tests"]]
        score = "balanced_accuracy" if "auc" in tests[0][0] else "accuracy"
        values += [mean(one[score] for one in test) for test in tests]
        auc = [f"{mean(one['auc'] for one in test):.3f}" for test in tests if "auc" in test[0]]
        assert f"| {title} | " + " | ".join([f"{value:.1f}" for value in values] + auc) + " |" in README


def test_the_example_is_what_the_program_printed():
    (content,) = outcomes("example")
    assert Outcome(ROOT, content).table().rpartition("\n")[0] in (ROOT / "README.md").read_text()
    assert content["delivered"] == "plain" and "can come from chance" in content["verdict"]


def test_fruit_in_the_first_table():
    runs = outcomes("fruit-seed*")
    plain, ours = (
        mean(run["candidates"][name or run["delivered"]]["tests"]["shop"]["accuracy"] for run in runs)
        for name in ("plain", "")
    )
    assert f"| {plain:.1f} | {ours:.1f} (`robustify`) | {len(runs)} |" in (ROOT / "README.md").read_text()


def test_solar_cells_the_other_way_round():
    (run,) = outcomes("solar-poly-mono-seed0")
    plain, again, other = (
        run["candidates"][name]["tests"]["mono"]["balanced_accuracy"]
        for name in ("plain", "plain_repeat", "interpolated")
    )
    said = f"{plain:.1f} balanced accuracy on the new cells, where its repetition had {again:.1f} and *interpolated*"
    assert run["delivered"] == "plain" and f"{said} {other:.1f}" in README


def test_the_noise_of_training_that_robustify_reckons_with_is_that_of_the_records():
    """Between two plain trainings of a pretrained network: half the mean square of their gaps."""
    table = json.loads((ROOT / "src" / "meada" / "robustify" / "noise.json").read_text())["measured"]
    (one,) = [entry for entry in table if entry["pretrained"]]
    means = [run["evidence"]["mean"] for run in outcomes("*-seed*") if "interpolated" in run["candidates"]]
    gaps = [each["plain"] - each["plain_repeat"] for each in means]
    assert one["sd"] == pytest.approx(mean(gap**2 / 2 for gap in gaps) ** 0.5, abs=0.005)
    assert one["runs"] == 2 * len(gaps)


@pytest.mark.parametrize("name", ["null-100.json", "null.json"])
def test_the_noise_from_scratch_is_that_of_its_record(name):
    table = json.loads((ROOT / "src" / "meada" / "robustify" / "noise.json").read_text())["measured"]
    (one,) = [entry for entry in table if f"results/robustify/{name})" in entry["data"]]
    record = json.loads((ROOT / "results" / "robustify" / name).read_text())
    assert one["runs"] == 3 * record["runs"] and one["train"] == record["train"]
    assert one["sd"] == pytest.approx(record["run_to_run_sd"], abs=0.005)


def test_hard_against_random_views():
    """The decision's figures are those of the record, and its verdict is that of its runs."""
    held = json.loads((ROOT / "benchmarks" / "hardness.json").read_text())
    found = held["verdict"]
    assert verdict(held["runs"]) == found and found["hard_wins"] is False and not found["missing"]
    decision = " ".join((ROOT / "docs/decisions/0084-views-on-digits.md").read_text().split())
    for before, data in (("hard minus random is", "digits"), ("1,215),", "cifar10c-small"), ("133),", "pacs-photo")):
        *gaps, last = (f"{gap:.2f}" for gap in found["gaps"][data])
        assert f"{before} {', '.join(gaps)} and {last} points" in decision
    assert f"All together {found['mean']:.2f} points (p = {found['p']:.2f})" in decision
