"""What the page says of differences: through the functions that it uses, from runs on disk."""

import json

import numpy as np
import pytest
import torch
from scipy import stats
from tests_records import write_run

from meada.evaluation.predictions import load_predictions, save_predictions
from meada.evaluation.statistics import t_interval
from meada.reports.page import build
from meada.reports.page.groups import experiments
from meada.reports.runs import find_runs

CORRUPTIONS = tuple(f"corruption_{k}" for k in range(15))


def one_experiment(folder):
    (one,) = experiments(find_runs([folder]))
    return one


def verdicts(page) -> list[str]:
    tables = [block for block in page.blocks() if getattr(block, "title", "").startswith("Difference from")]
    return [str(row[-1]) for table in tables for row in table.rows]


def words(page) -> str:
    return " ".join(block.text for block in page.blocks() if hasattr(block, "text"))


def test_wide_gaps_are_beyond_chance_however_many_rivals_and_columns_there_are(tmp_path):
    """Ten seeds, seven rivals, fifteen corruptions and their mean, every gap about 65 points."""
    methods = ("ada", "meada", "mixup", "cutout", "cutmix", "augmix", "autoaugment")
    for seed in range(10):
        for method in ("erm", *methods):
            write_run(tmp_path, method, seed=seed, skill=0.0 if method == "erm" else 9.0, images=60,
                      domains=CORRUPTIONS, predictions=seed % 2 == 0)  # fmt: skip
    assert verdicts(build(find_runs([tmp_path]))) == ["beyond chance"] * 7 * 16


def test_seeds_speak_of_methods_with_or_without_predictions(tmp_path):
    for seed in range(3):
        write_run(tmp_path, "erm", seed=seed, predictions=True)
        write_run(tmp_path, "meada", seed=seed, skill=2.0, predictions=True)
    erm, meada = (one := one_experiment(tmp_path)).groups
    for domain in (*one.domains, "mean"):
        values = [g.values("last", domain) for g in (meada, erm)]
        gap = meada.minus(erm, "last", domain)
        assert gap.p == pytest.approx(stats.ttest_rel(*values).pvalue) and gap.about == "methods"
        assert erm.interval("last", domain) == t_interval(values[1])


def test_one_seed_speaks_of_two_models_and_never_of_the_methods(tmp_path):
    write_run(tmp_path, "erm", skill=0.0, images=300)
    write_run(tmp_path, "meada", skill=6.0, images=300)
    page = build(find_runs([tmp_path]))
    assert verdicts(page) == ["these two models differ"] * 3
    assert "These two models, one run of each: ME-ADA is" in words(page) and "beyond chance" not in verdicts(page)
    assert "about the methods, one training run of each says nothing" in words(page)
    erm, meada = one_experiment(tmp_path).groups
    gap = meada.minus(erm, "last", "mean")
    assert gap.interval.low < gap.value < gap.interval.high and gap.about == "models"
    values = [g.values("last", "mean")[0] for g in (meada, erm)]
    assert gap.value == pytest.approx(values[0] - values[1])


def test_one_seed_without_predictions_is_unknown(tmp_path):
    write_run(tmp_path, "erm", skill=0.0, predictions=False)
    write_run(tmp_path, "meada", skill=6.0)
    page = build(find_runs([tmp_path]))
    assert verdicts(page) == ["unknown"] * 3
    assert "whether the two models differ is unknown" in words(page)


def test_gaps_that_do_not_vary_are_unknown_on_the_page(tmp_path):
    for seed in range(2):
        for method, accuracy in (("erm", 40.0 + seed), ("meada", 90.0 + seed)):
            record = write_run(tmp_path, method, seed=seed, predictions=False) / "record.json"
            held = json.loads(record.read_text())
            for scores in held["results"]["last"].values():
                scores["accuracy"] = accuracy
            record.write_text(json.dumps(held))
    page = build(find_runs([tmp_path]))
    assert verdicts(page) == ["unknown"] * 3
    assert "whether this is chance is unknown" in words(page)


def test_severities_of_one_image_are_one_image(tmp_path):
    """Five equal copies of each image tell no more than one does."""
    write_run(tmp_path / "a", "erm", severities=1)
    write_run(tmp_path / "b", "erm", severities=5)
    one, five = (tmp_path / k / "erm-0-0" / "predictions.safetensors" for k in "ab")
    told, classes = load_predictions(one)
    for parts in told["last"].values():
        for name in parts:
            parts[name] = torch.cat([parts[name]] * 5)
    save_predictions(five, told, classes)
    for domain in ("svhn", "mean"):
        first, second = (one_experiment(tmp_path / k).groups[0].interval("last", domain) for k in "ab")
        assert (first.low, first.high) == pytest.approx((second.low, second.high))


def test_corruptions_of_the_same_pictures_are_not_independent(tmp_path):
    """The mean over corrupted domains is as wide as one of them where all agree; over other domains it is narrower."""
    wide = {}
    for severities in (1, 0):
        path = write_run(tmp_path / str(severities), "erm", severities=severities, domains=("a", "b", "c", "d"))
        file = path / "predictions.safetensors"
        told, classes = load_predictions(file)
        first = told["last"]["a"]
        for name in told["last"]:
            told["last"][name] = first
        save_predictions(file, told, classes)
        group = one_experiment(tmp_path / str(severities)).groups[0]
        spans = [group.interval("last", domain) for domain in ("a", "mean")]
        wide[severities] = np.divide(*(span.high - span.low for span in spans[::-1]))
    assert wide[1] == pytest.approx(1.0) and wide[0] == pytest.approx(0.5, abs=0.08)


def test_two_models_that_saw_other_pictures_are_not_paired(tmp_path):
    write_run(tmp_path, "erm")
    file = write_run(tmp_path, "meada", skill=3.0) / "predictions.safetensors"
    told, classes = load_predictions(file)
    for parts in told["last"].values():
        parts["label"], parts["guess"] = parts["label"].flip(0), parts["guess"].flip(0)
    save_predictions(file, told, classes)
    erm, meada = one_experiment(tmp_path).groups
    assert meada.minus(erm, "last", "svhn").interval is None


def test_pools_of_8_and_of_32_bits_are_two_experiments(tmp_path):
    for seed in range(2):
        for store in ("float32", "uint8"):
            run = write_run(tmp_path, "meada", seed=seed, name=f"{store}-{seed}")
            recipe = run / "recipe.toml"
            keep = "true" if seed else "false"  # makes no other experiment
            recipe.write_text(f"{recipe.read_text()}\n[pool]\nstore = '{store}'\nkeep = {keep}\n")
        write_run(tmp_path, "meada", seed=seed + 2, name=f"older-{seed}")  # before there was a choice: float32
    groups = one_experiment(tmp_path).groups
    assert sorted((g.label, len(g.runs)) for g in groups) == [
        ("ME-ADA, pool.store = float32", 4), ("ME-ADA, pool.store = uint8", 2),
    ]  # fmt: skip


def test_of_two_forms_of_the_plain_method_the_one_with_most_seeds_is_the_baseline(tmp_path):
    write_run(tmp_path, "erm", steps=100, name="short")
    for seed in range(3):
        write_run(tmp_path, "erm", seed=seed, steps=300)
    write_run(tmp_path, "erm", steps=500, name="long")
    assert len(one_experiment(tmp_path).baseline.runs) == 3


def test_the_column_of_holm_is_the_column_of_p_corrected_over_the_domains(tmp_path):
    for seed in range(4):
        write_run(tmp_path, "erm", seed=seed, domains=("svhn", "usps", "syn"))
        write_run(tmp_path, "meada", seed=seed, skill=1.3, domains=("svhn", "usps", "syn"))
    page = build(find_runs([tmp_path]))
    (table,) = [block for block in page.blocks() if getattr(block, "title", "").startswith("Difference from")]
    raw, shown = ([float(row[table.columns.index(name)]) for row in table.rows] for name in ("p", "p (Holm)"))
    wanted, least = {}, 0.0
    for k, p in enumerate(sorted(raw)):  # the smallest of m times m, the next times m - 1, never falling
        least = wanted[p] = max(least, min(1.0, (len(raw) - k) * p))
    assert len(raw) == 4 and shown == pytest.approx([wanted[p] for p in raw])
    assert max(shown[k] / raw[k] for k in range(4)) > 2  # the correction is to be seen here


@pytest.mark.parametrize("skill, way", [(3.0, "higher"), (0.0, "lower")])
def test_the_sentence_says_which_way_the_difference_goes(tmp_path, skill, way):
    for seed in range(2):
        write_run(tmp_path, "erm", seed=seed)
        write_run(tmp_path, "meada", seed=seed, skill=skill)
    said = words(build(find_runs([tmp_path])))
    assert f"points {way} than ERM on average" in said
