"""Proposition 3: its number, its inverse, its lemmas exactly, its promise in simulation."""

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import entropy as scipy_entropy
from scipy.stats import multinomial

from meada import theory
from meada.errors import MeadaError


def printed(n: int, classes: int, delta: float) -> float:
    """Proposition 3, typed again from the paper in plain floats."""
    return classes * math.log(n) * math.sqrt(math.log(2 / delta)) / math.sqrt(2 * n) + (classes - 1) / n


def entropy(p: np.ndarray) -> np.ndarray:
    return np.asarray(scipy_entropy(p, axis=-1))


# --- the number ---


def test_the_bound_worked_out_by_hand() -> None:
    # delta = 2/e makes the root of log(2/delta) one
    assert theory.entropy_deviation_bound(50, 3, 2 / math.e) == pytest.approx(0.3 * math.log(50) + 0.04)


@given(st.integers(1, 10**9), st.integers(1, 2000), st.floats(1e-12, 1 - 1e-12))
def test_the_bound_is_the_printed_one(n: int, classes: int, delta: float) -> None:
    assert theory.entropy_deviation_bound(n, classes, delta) == pytest.approx(printed(n, classes, delta), rel=1e-13)


@pytest.mark.parametrize("n", [2, 7, 1000])
def test_the_bound_is_lemma_1_plus_the_looser_half_of_lemma_2(n: int) -> None:
    total = theory.deviation_from_mean_bound(n, 5, 0.1) + 4 / n
    assert theory.entropy_deviation_bound(n, 5, 0.1) == pytest.approx(total, rel=1e-14)
    assert theory.bias_bound(n, 5) < 4 / n


@pytest.mark.parametrize("bound", [theory.entropy_deviation_bound, theory.sharper_deviation_bound])
def test_nonsense_is_refused(bound: Callable[[int, int, float], float]) -> None:
    for n, classes, delta in [(0, 3, 0.1), (5, 0, 0.1), (5, 3, 0.0), (5, 3, 1.0), (5, 3, math.nan)]:
        with pytest.raises(MeadaError):
            bound(n, classes, delta)


# --- the inverse ---


@pytest.mark.parametrize("classes", [1, 2, 3, 10])
@pytest.mark.parametrize("delta", [1e-6, 0.05, 0.5, 0.99])
def test_samples_needed_by_brute_force(classes: int, delta: float) -> None:
    bounds = np.array([printed(n, classes, delta) for n in range(1, 20_001)])
    assert (np.diff(bounds[8:]) < 0).all()
    for error in [*np.geomspace(bounds[-1] * 1.001, bounds.max() * 1.1, 40), bounds[0] * 1.0001]:
        too_large = np.flatnonzero(bounds > error)
        expected = 1 if too_large.size == 0 else int(too_large[-1]) + 2  # index 0 holds n = 1
        if error > 0 and expected <= 20_000:
            assert theory.samples_needed(float(error), classes, delta) == expected


def test_a_tiny_n_that_meets_the_error_by_chance_does_not_count() -> None:
    assert theory.entropy_deviation_bound(1, 2, 0.01) == 1.0 < theory.entropy_deviation_bound(6, 2, 0.01)
    assert theory.samples_needed(1.5, 2, 0.01) > 6
    assert theory.samples_needed(3.0, 2, 0.01) == 1  # above the peak every n will do


@settings(max_examples=60)
@given(st.integers(9, 10**12), st.integers(1, 1000), st.floats(1e-9, 0.999))
def test_samples_needed_inverts_the_bound(n: int, classes: int, delta: float) -> None:
    assert theory.samples_needed(theory.entropy_deviation_bound(n, classes, delta), classes, delta) == n


@pytest.mark.parametrize("error", [1e-3, 1e-6, 1e-9, 1e-20])
def test_samples_needed_is_the_first_n_however_large(error: float) -> None:
    n = theory.samples_needed(error, 10, 0.05)
    assert theory.entropy_deviation_bound(n, 10, 0.05) <= error
    for away in {2**k for k in range(n.bit_length() - 1)}:  # rounding would blur the nearest ones
        assert theory.entropy_deviation_bound(n - away, 10, 0.05) > error
        assert theory.entropy_deviation_bound(n + away, 10, 0.05) <= error


@pytest.mark.parametrize("error", [0.0, -1.0, math.nan])
def test_no_sample_is_large_enough_for_no_error(error: float) -> None:
    with pytest.raises(MeadaError, match="error"):
        theory.samples_needed(error, 10, 0.05)


# --- the lemmas, exactly ---


def every_sample(n: int, p_x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All ways to draw n from a finite X: the empirical laws and their probabilities."""
    counts = np.array([c for c in product(range(n + 1), repeat=len(p_x)) if sum(c) == n])
    return counts / n, multinomial.pmf(counts, n, p_x)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 10])
@pytest.mark.parametrize("seed", range(4))
def test_lemma_2_exactly_for_drawn_labels_and_for_mean_predictions(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    p_x, predictions = rng.dirichlet(np.ones(3)), rng.dirichlet(np.full(4, 0.4), 3)
    p_hat, chance = every_sample(n, p_x)
    biases = {
        3: entropy(p_x) - chance @ entropy(p_hat),  # the label is x itself, counted
        4: entropy(p_x @ predictions) - chance @ entropy(p_hat @ predictions),  # known p(t|x)
    }
    for classes, bias in biases.items():
        assert 0 <= bias <= theory.bias_bound(n, classes)


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_lemma_2_is_reached_by_one_draw_from_the_uniform_law(classes: int) -> None:
    bias = math.log(classes) - 0.0  # one drawn label has entropy 0
    assert theory.bias_bound(1, classes) == pytest.approx(bias, abs=1e-14)


@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("n", [1, 2, 3, 10, 100])
def test_no_replacement_of_a_sample_moves_the_entropy_further(n: int, classes: int) -> None:
    rng = np.random.default_rng([n, classes])
    for shape in (0.02, 0.5):
        rest = rng.dirichlet(np.full(classes, shape), (500, n - 1)).sum(1)
        before, after = rng.dirichlet(np.full(classes, shape), (2, 500))
        change = abs(entropy((rest + before) / n) - entropy((rest + after) / n))
        assert change.max() <= theory.replacement_bound(n, classes) + 1e-9
    sure = np.eye(classes)[0]
    elsewhere = (1 - sure) / (classes - 1)
    if n > 1:  # n equal and sure predictions, of which one turns to all the other classes
        reached = entropy(((n - 1) * sure + elsewhere) / n)
        assert reached == pytest.approx(theory.replacement_bound(n, classes), abs=1e-12)


def test_the_constant_of_lemma_1_is_large_enough_from_n_2_on() -> None:
    for n, classes in product([2, 3, 4, 5, 10, 100, 10**4], [1, 2, 3, 4, 5, 10, 100, 1000]):
        assert theory.replacement_bound(n, classes) <= classes * math.log(n) / n + 1e-12
    assert theory.replacement_bound(1, 10) == pytest.approx(math.log(10))  # the printed constant is 0


def test_lemma_1_is_false_for_one_sample_and_refused() -> None:
    """X is one of two inputs, read as sure or as torn: H-hat is 0 or log K, never its mean."""
    p_hat, chance = every_sample(1, np.array([0.5, 0.5]))
    h_hat = entropy(p_hat @ np.array([[1.0, 0.0], [0.5, 0.5]]))
    deviation = abs(h_hat - chance @ h_hat)
    assert deviation.min() == pytest.approx(math.log(2) / 2)
    printed_at_one = 2 * math.log(1) * math.sqrt(math.log(2 / 0.01)) / math.sqrt(2)
    assert chance @ (deviation > printed_at_one) == pytest.approx(1)
    with pytest.raises(MeadaError, match="at least 2"):
        theory.deviation_from_mean_bound(1, 2, 0.01)


def test_proposition_3_is_true_for_one_sample_since_it_says_nothing() -> None:
    for classes in range(1, 200):
        assert theory.entropy_deviation_bound(1, classes, 0.5) == classes - 1 >= math.log(classes)


@pytest.mark.parametrize("n", [2, 3, 6])
@pytest.mark.parametrize("delta", [0.01, 0.2, 0.7])
def test_lemma_1_exactly_for_few_samples(n: int, delta: float) -> None:
    rng = np.random.default_rng(n)
    for shape in (0.05, 1.0):
        p_x, predictions = rng.dirichlet(np.ones(4)), rng.dirichlet(np.full(3, shape), 4)
        p_hat, chance = every_sample(n, p_x)
        h_hat = entropy(p_hat @ predictions)
        far = abs(h_hat - chance @ h_hat) > theory.deviation_from_mean_bound(n, 3, delta)
        assert chance @ far <= delta


# --- the promise, in simulation ---

REPEATS = 4000


@pytest.mark.parametrize("delta", [0.01, 0.1, 0.5])
@pytest.mark.parametrize(("n", "classes"), [(3_000, 2), (5_000, 3), (20_000, 5)])
def test_proposition_3_holds_at_its_confidence_in_simulation(n: int, classes: int, delta: float) -> None:
    rng = np.random.default_rng([n, classes])
    p_x, predictions = rng.dirichlet(np.ones(8)), rng.dirichlet(np.full(classes, 0.3), 8)
    bound = theory.entropy_deviation_bound(n, classes, delta)
    assert bound < math.log(classes)  # otherwise it would hold for any two entropies
    p_y = p_x @ predictions
    truth = entropy(p_y)
    mean_prediction = rng.multinomial(n, p_x, REPEATS) / n @ predictions
    drawn_labels = rng.multinomial(n, p_y, REPEATS) / n
    for p_hat in (mean_prediction, drawn_labels):
        deviation = abs(entropy(p_hat) - truth)
        assert (deviation > bound).mean() <= delta
        assert (deviation > theory.sharper_deviation_bound(n, classes, delta)).mean() <= delta
        assert 0 < np.quantile(deviation, 1 - delta) < bound / 10  # how loose it is


@pytest.mark.parametrize("delta", [0.05, 0.3])
def test_the_mean_prediction_entropy_has_its_own_bound_and_it_is_nearly_tight(delta: float) -> None:
    n, classes = 400, 10
    rng = np.random.default_rng(0)  # half of the inputs are read as sure, half as torn
    mean_h = math.log(classes) * rng.binomial(n, 0.5, REPEATS) / n
    deviation = abs(mean_h - math.log(classes) / 2)
    bound = theory.mean_entropy_deviation_bound(n, classes, delta)
    assert (deviation > bound).mean() <= delta
    assert (deviation > bound / 2).mean() > delta


@pytest.mark.parametrize(("n", "classes"), [(100, 2), (10_000, 10), (50_000, 100)])
def test_the_sharper_bound_is_sharper(n: int, classes: int) -> None:
    assert theory.sharper_deviation_bound(n, classes, 0.05) < theory.entropy_deviation_bound(n, classes, 0.05)


def test_a_network_that_has_seen_the_sample_breaks_the_promise() -> None:
    """Class 0 on the sample, an even coin elsewhere: p(y|x) was not fixed before S was drawn."""
    n, inputs = 3_000, 200_000
    sample = np.random.default_rng(0).integers(inputs, size=n)
    predictions = np.full((inputs, 2), 0.5)
    predictions[sample] = [1.0, 0.0]
    truth, estimate = entropy(predictions.mean(0)), entropy(predictions[sample].mean(0))
    assert abs(truth - estimate) > theory.entropy_deviation_bound(n, 2, 0.05)


def test_copies_of_a_sample_do_not_count_as_samples() -> None:
    """One drawn label of a fair coin, repeated a million times: always log 2 from the truth."""
    copies = 1_000_000
    estimate = entropy(np.array([copies, 0]) / copies)
    assert abs(math.log(2) - estimate) > 10 * theory.entropy_deviation_bound(copies, 2, 0.05)
