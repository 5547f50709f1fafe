"""Intervals, differences and p-values against what is known of them without resampling."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests_records import write_run

from meada.evaluation.predictions import load_predictions, save_predictions
from meada.evaluation.statistics import t_interval
from meada.reports.page.correct import Bootstrap
from meada.reports.page.groups import experiments
from meada.reports.page.statistics import (
    bootstrap_p,
    by_seeds,
    holm,
    image_means,
    percentile_interval,
    seed_weights,
)
from meada.reports.runs import find_runs


def test_resampled_images_spread_as_a_proportion_does():
    right = (np.arange(400) < 300).astype(float)[None]
    means = image_means(right)
    assert means.mean() == pytest.approx(0.75, abs=0.003)
    assert means.std() == pytest.approx((0.75 * 0.25 / 400) ** 0.5, rel=0.06)


def test_resampled_seeds_add_their_variance():
    accuracies = np.array([40.0, 50.0, 60.0])
    drawn = (seed_weights(3) * accuracies).sum(1)
    assert np.allclose(seed_weights(3).sum(1), 1)
    assert drawn.std() == pytest.approx(accuracies.std() / 3**0.5, rel=0.06)


def test_the_same_images_are_drawn_for_every_method():
    rng = np.random.default_rng(0)
    a = (rng.random((2, 100)) < 0.6).astype(float)
    both = image_means(np.concatenate([a, a]))
    assert np.array_equal(both[:, :2], both[:, 2:]) and np.array_equal(both[:, :2], image_means(a))


def test_a_difference_of_nothing_may_be_chance_and_a_sure_one_may_not():
    assert bootstrap_p(np.zeros(1999)) == 1.0
    assert bootstrap_p(np.ones(1999)) == bootstrap_p(-np.ones(1999)) == 2 / 2000
    gap = percentile_interval(np.arange(1001) / 1000, "")
    assert (gap.low, gap.high) == (pytest.approx(0.025), pytest.approx(0.975))


def test_by_seeds_is_students_test():
    a, b = [50.0, 52.0, 57.0, 51.0], [49.0, 50.0, 51.0, 50.5]
    paired, welch = (by_seeds(a, b, paired=p) for p in (True, False))
    assert paired.p == pytest.approx(stats.ttest_rel(a, b).pvalue)
    assert welch.p == pytest.approx(stats.ttest_ind(a, b, equal_var=False).pvalue)
    low, high = stats.ttest_rel(a, b).confidence_interval(0.95)
    assert (paired.interval.low, paired.interval.high) == pytest.approx((low, high))
    assert paired.value == pytest.approx(2.375)
    one = by_seeds([50.0], [40.0], paired=True)
    assert one.value == 10 and one.p is None and one.interval is None


def test_seeds_that_all_agree_leave_no_nan():
    assert by_seeds([50.0, 51.0], [50.0, 51.0], paired=True).p == 1.0
    assert by_seeds([51.0, 52.0], [50.0, 51.0], paired=True).p == 0.0
    assert by_seeds([50.0, 50.0], [50.0, 50.0], paired=False).p == 1.0
    assert t_interval([50.0, 50.0]).low == t_interval([50.0, 50.0]).high == 50.0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_keeps_the_order_and_is_bonferroni_for_the_smallest(p_values):
    corrected = holm(p_values)
    assert all(p <= q <= 1 for p, q in zip(p_values, corrected, strict=True))
    ranked = [corrected[i] for i in np.argsort(p_values, kind="stable")]
    assert ranked == sorted(ranked)
    assert min(corrected) == pytest.approx(min(1.0, len(p_values) * min(p_values)))


@pytest.fixture
def experiment(tmp_path):
    for seed in range(3):
        write_run(tmp_path, "erm", seed=seed, skill=1.0)
        write_run(tmp_path, "meada", seed=seed, skill=2.0)
    (one,) = experiments(find_runs([tmp_path]))
    return one


def test_pairing_by_image_narrows_a_difference(experiment):
    """The same noise behind both methods: what one reads, the better one reads too."""
    boot = Bootstrap("last", experiment.domains)
    boot.prepare(list(experiment.runs()))
    erm, meada = experiment.groups
    gap = boot.difference(meada, erm, "mean")
    values = [g.summary("last", "mean").mean for g in (meada, erm)]
    assert gap.value == pytest.approx(values[0] - values[1]) and gap.seeds == 3
    assert gap.interval.low < gap.value < gap.interval.high
    wide = [boot.interval(g, "mean") for g in (meada, erm)]
    apart = sum((i.high - i.low) ** 2 for i in wide) ** 0.5
    assert gap.interval.high - gap.interval.low < 0.8 * apart
    assert gap.p < 0.05 and "paired bootstrap" in gap.interval.how
    itself = boot.difference(erm, erm, "svhn")
    assert (itself.value, itself.interval.low, itself.interval.high, itself.p) == (0, 0, 0, 1)


def test_without_predictions_the_seeds_alone_speak(tmp_path):
    for seed in range(3):
        write_run(tmp_path, "erm", seed=seed, predictions=False)
        write_run(tmp_path, "meada", seed=seed, skill=2.0, predictions=False)
    (one,) = experiments(find_runs([tmp_path]))
    boot = Bootstrap("last", one.domains)
    boot.prepare(list(one.runs()))
    erm, meada = one.groups
    wanted = t_interval(erm.values("last", "svhn"))
    assert boot.interval(erm, "svhn") == wanted
    values = [g.values("last", "svhn") for g in (meada, erm)]
    assert boot.difference(meada, erm, "svhn").p == pytest.approx(stats.ttest_rel(*values).pvalue)


def test_severities_of_one_image_are_one_image(tmp_path):
    """Five equal copies of each image tell no more than one does."""
    write_run(tmp_path / "a", "erm", severities=1)
    write_run(tmp_path / "b", "erm", severities=5)
    one, five = (tmp_path / k / "erm-0-0" / "predictions.safetensors" for k in "ab")
    told, classes = load_predictions(one)
    for parts in told["last"].domains.values():
        for name in parts:
            parts[name] = torch.cat([parts[name]] * 5)
    save_predictions(five, told, classes)
    found = []
    for k in "ab":
        (experiment,) = experiments(find_runs([tmp_path / k]))
        boot = Bootstrap("last", experiment.domains)
        boot.prepare(list(experiment.runs()))
        found.append(boot.interval(experiment.groups[0], "svhn"))
    assert found[0].low == pytest.approx(found[1].low) and found[0].high == pytest.approx(found[1].high)
