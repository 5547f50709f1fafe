"""Intervals, differences and p-values against closed forms, and against simulated nulls."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from meada.errors import MeadaError
from meada.evaluation.statistics import (
    Difference,
    Summary,
    bootstrap_p,
    holm,
    image_interval,
    over_seeds,
    page_trend,
    paired_bootstrap,
    residual,
    summarise,
    t_interval,
    tukey_range,
    verdicts,
    welch,
)


def share_beyond_zero(seeds: int, *, paired: bool, trials: int = 2_000) -> float:
    """How often a 95 % interval excludes zero where both methods are the same: independent runs, sd 1 point."""
    rng = np.random.default_rng([7, seeds, paired])
    outside = 0
    for a, b in 60 + rng.standard_normal((trials, 2, seeds)):
        names = [range(seeds), range(seeds) if paired else range(seeds, 2 * seeds)]
        ours, theirs = (dict(zip(k, map(float, v), strict=True)) for k, v in zip(names, (a, b), strict=True))
        gap = over_seeds(ours, theirs)
        assert gap.about == "methods" and (gap.p < 0.05) == (gap.interval.low > 0 or gap.interval.high < 0)
        outside += gap.p < 0.05
    return outside / trials


@pytest.mark.parametrize("seeds", [2, 3, 5, 10])
def test_an_interval_over_seeds_covers_what_it_claims(seeds):
    assert 0.03 <= share_beyond_zero(seeds, paired=True) <= 0.08


@pytest.mark.parametrize("seeds", [3, 10])
def test_an_unpaired_interval_is_not_too_sure_either(seeds):
    assert 0.02 <= share_beyond_zero(seeds, paired=False) <= 0.08


def test_the_bootstrap_over_pictures_covers_what_it_claims():
    """Two models that err independently, equally often, on each of 300 pictures; corrupted pictures come in rows."""
    rng, trials, outside = np.random.default_rng(3), 400, 0
    for _ in range(trials):
        hard = rng.random((1, 300)) < 0.5  # a hard picture is hard under every corruption
        a, b = ((rng.random((5, 300)) < np.where(hard, 0.3, 0.9)).astype(float) for _ in "ab")
        interval = paired_bootstrap(a, b, draws=400, seed=int(rng.integers(2**31))).interval
        outside += interval.low > 0 or interval.high < 0
    assert 0.02 <= outside / trials <= 0.085


def test_rows_of_one_picture_are_one_picture():
    """Fifteen equal rows tell no more than one does: the interval stays as wide."""
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 200)) < [[0.7], [0.6]]
    one, many = paired_bootstrap(a, b), paired_bootstrap(np.tile(a, (15, 1)), np.tile(b, (15, 1)))
    assert many.value == pytest.approx(one.value) == pytest.approx(100 * (a.mean() - b.mean()))
    assert many.interval.low == pytest.approx(one.interval.low)
    assert many.interval.high == pytest.approx(one.interval.high)
    loose = paired_bootstrap(np.tile(a, 15), np.tile(b, 15)).interval  # as if they were other pictures
    assert loose.high - loose.low < 0.3 * (one.interval.high - one.interval.low)


def test_the_bootstrap_spreads_as_a_proportion_does_and_sets_are_independent():
    right = np.arange(400) < 300
    one = image_interval(right)
    half = 1.96 * 100 * (0.75 * 0.25 / 400) ** 0.5
    assert (one.high - one.low) / 2 == pytest.approx(half, rel=0.08)
    two = image_interval({"a": right, "b": right})  # other pictures of another domain: the mean is narrower
    assert (two.high - two.low) / 2 == pytest.approx(half / 2**0.5, rel=0.08)


def test_pairing_by_picture_narrows_a_difference():
    rng = np.random.default_rng(0)
    noise = rng.random(500)
    a, b = noise < 0.7, noise < 0.6  # what one classifies correctly, the better one does too
    gap, apart = paired_bootstrap(a, b).interval, [image_interval(one) for one in (a, b)]
    assert gap.high - gap.low < 0.6 * sum((i.high - i.low) ** 2 for i in apart) ** 0.5


def test_a_bootstrap_takes_tensors_and_speaks_of_models():
    gap = paired_bootstrap(torch.tensor([True, True]), torch.tensor([True, False]))
    assert (gap.value, gap.about, gap.seeds) == (50.0, "models", 1)
    with pytest.raises(MeadaError, match=r"must be scored on the same pictures, got .*\(1, 2\).*\(1, 3\)"):
        paired_bootstrap([1, 0], [1, 0, 1])


def test_a_p_of_a_bootstrap_is_never_zero():
    assert bootstrap_p(np.zeros(1999)) == 1.0
    assert bootstrap_p(np.ones(1999)) == bootstrap_p(-np.ones(1999)) == 2 / 2000


def test_over_seeds_is_students_test_and_welchs():
    a, b = [50.0, 52.0, 57.0, 51.0], [49.0, 50.0, 51.0, 50.5]
    paired = over_seeds(dict(enumerate(a)), dict(enumerate(b)))
    unpaired = over_seeds(dict(enumerate(a)), dict(enumerate(b, start=10)))
    for found, test in ((paired, stats.ttest_rel(a, b)), (unpaired, stats.ttest_ind(a, b, equal_var=False))):
        assert found.p == pytest.approx(test.pvalue) and found.value == pytest.approx(2.375)
        low, high = test.confidence_interval(0.95)
        assert (found.interval.low, found.interval.high) == pytest.approx((low, high))
    assert welch(summarise(a), summarise(b)) == unpaired and paired.seeds == 4


def test_only_common_seeds_are_paired():
    gap = over_seeds({0: 50.0, 1: 52.0, 9: 99.0}, {0: 40.0, 1: 41.0, 8: 0.0})
    assert (gap.value, gap.seeds) == (10.5, 2)


def test_one_run_of_each_says_nothing_of_the_methods():
    gap = over_seeds({0: 50.0}, {0: 40.0})
    assert (gap.value, gap.p, gap.interval, gap.about) == (10.0, None, None, "models")
    assert over_seeds({0: 50.0, 1: 51.0}, {0: 40.0}).p is None


def test_gaps_that_do_not_vary_are_unknown():
    """Also where the sums of floats differ in their last bit."""
    for a, b in (({0: 50.0, 1: 51.0}, {0: 50.0, 1: 51.0}), ({0: 0.3, 1: 0.9}, {0: 0.1, 1: 0.7})):
        gap = over_seeds(a, b)
        assert gap.p is None and gap.interval is None
        assert str(verdicts([gap])[0]) == "unknown"
    assert welch(Summary(50.0, 0.0, 3), Summary(49.0, 0.0, 3)).p is None
    assert t_interval([50.0, 50.0]) is None


def test_verdicts_correct_over_the_comparisons_of_one_rival():
    gaps = [Difference(1.0, None, p, 10, "methods") for p in (0.01, 0.04, None)]
    first, second, third = verdicts(gaps)
    assert (first.p, second.p, third.p) == (0.02, 0.04, None)
    assert [str(v) for v in (first, second, third)] == ["beyond chance", "beyond chance", "unknown"]
    assert [str(v) for v in verdicts([gaps[1]] * 2)] == ["may be chance"] * 2
    models = [str(v) for v in verdicts([Difference(1.0, None, p, 1, "models") for p in (0.001, 0.9)])]
    assert models == ["these two models differ", "these two models: may be chance"]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_keeps_the_order_and_is_bonferroni_for_the_smallest(p_values):
    corrected = holm(p_values)
    assert all(p <= q <= 1 for p, q in zip(p_values, corrected, strict=True))
    ranked = [corrected[i] for i in np.argsort(p_values, kind="stable")]
    assert ranked == sorted(ranked)
    assert min(corrected) == pytest.approx(min(1.0, len(p_values) * min(p_values)))


def test_page_finds_the_order_that_is_there_and_not_its_reverse():
    up = [[3.0, 3.1, 3.2, 3.3], [2.0, 2.1, 2.2, 2.3], [1.0, 1.1, 1.2, 1.3]]
    assert page_trend(up) == pytest.approx(6.0**-4)
    assert page_trend(up[::-1]) == pytest.approx(1.0)


def test_what_neither_seed_nor_setting_explains():
    """Effects that add up leave nothing; an error of known size in a 2 x 3 table leaves its root mean square."""
    settings, seeds = ["a", "a", "a", "b", "b", "b"], [0, 1, 2, 0, 1, 2]
    sums = [10.0, 11.0, 12.0, 20.0, 21.0, 22.0]
    assert residual(sums, settings, seeds) == (pytest.approx(0.0, abs=1e-9), 2)
    off = [s + e for s, e in zip(sums, (1, -1, 0, -1, 1, 0), strict=True)]
    assert residual(off, settings, seeds) == (pytest.approx((4 / 2) ** 0.5), 2)
    assert residual([1.0, 2.0], ["a", "b"], [0, 1]) is None


def test_tukeys_range_is_exceeded_one_time_in_twenty():
    rng = np.random.default_rng(1)
    over = 0
    limit = tukey_range(4, 3, 1.0, 8)
    for values in rng.standard_normal((2_000, 4, 3)):
        deviation = np.sqrt(values.var(1, ddof=1).mean())  # 4 x 2 = 8 degrees of freedom
        over += np.ptp(values.mean(1)) > limit * deviation
    assert 0.03 <= over / 2_000 <= 0.07
