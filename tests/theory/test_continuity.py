"""The supplement's first inequality, where it is true and where not; the sharp continuity bound."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import entropy as scipy_entropy

from meada.errors import MeadaError
from meada.theory import (
    binary_entropy,
    conditional_entropy,
    conditional_entropy_bound,
    conditional_entropy_difference_bound,
    distance_to_deterministic,
    entropy_continuity,
    mean_prediction_entropy,
    sharp_conditional_entropy_bound,
    term_change_bound,
)


def xlogx(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, x * np.log(np.where(x > 0, x, 1)), 0)


def largest_change(m: int, a_high: float, low: float, high: float, points: int = 1201) -> float:
    """The left side's maximum over a in [0, a_high] and Delta in [low, high], on a fine grid."""
    a = np.linspace(0, a_high, points)[:, None]
    after = a + np.linspace(low, high, points)[None]
    change = abs(xlogx(np.clip(after, 0, 1)) - xlogx(a))
    return float(change[(after >= -1e-12) & (after <= 1 + 1e-12)].max())


@pytest.mark.parametrize("m", [3, 4, 5, 10, 100, 1000])
def test_the_delta_inequality_holds_from_m_3_on_both_ways_and_everywhere(m: int) -> None:
    printed = math.log(m) / m
    # |Delta| <= 1/m, and a in the whole of [0, 1], not only up to 1 - 1/m.
    assert largest_change(m, 1.0, -1 / m, 1 / m) <= printed + 1e-12
    assert term_change_bound(m) == printed
    at_zero = abs(float(xlogx(np.array(1 / m))))  # a = 0, Delta = 1/m
    assert at_zero == pytest.approx(printed, abs=1e-15)


@pytest.mark.parametrize("m", [1, 2])
def test_the_delta_inequality_is_false_for_m_1_and_2(m: int) -> None:
    printed = math.log(m) / m
    found = largest_change(m, 1 - 1 / m, 0, 1 / m)  # inside the printed range of a and Delta
    assert found > printed + 0.02
    assert found <= term_change_bound(m) == 1 / math.e
    assert found == pytest.approx(term_change_bound(m), abs=1e-5)


@pytest.mark.parametrize("m", [3, 4, 10, 100])
def test_the_delta_inequality_needs_the_absolute_value_of_delta(m: int) -> None:
    a = delta_below = 1 / math.e  # Delta = -a is "<= 1/m" as printed, and a is within [0, 1 - 1/m]
    assert a <= 1 - 1 / m and -delta_below <= 1 / m
    assert abs(0 - a * math.log(a)) > math.log(m) / m


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_no_pair_of_laws_is_further_apart_than_the_continuity_bound(classes: int) -> None:
    rng = np.random.default_rng(classes)
    for concentration in (0.05, 0.5, 3.0):
        p, q = rng.dirichlet(np.full(classes, concentration), (2, 4000))
        q = p + rng.random((4000, 1)) ** 3 * (q - p)
        change = abs(scipy_entropy(p, axis=1) - scipy_entropy(q, axis=1))
        distance = abs(p - q).sum(1) / 2
        bound = np.array([entropy_continuity(float(d), classes) for d in distance])
        assert (change <= bound + 1e-9).all()


@pytest.mark.parametrize("classes", [1, 2, 3, 10])
@pytest.mark.parametrize("distance", [0.0, 0.01, 0.3, 0.5])
def test_the_continuity_bound_is_reached(distance: float, classes: int) -> None:
    if classes == 1:
        assert entropy_continuity(distance, classes) == 0
        return
    leaving = np.array([1 - distance, *[distance / (classes - 1)] * (classes - 1)])
    assert entropy_continuity(distance, classes) == pytest.approx(scipy_entropy(leaving), abs=1e-14)


def test_the_continuity_bound_ends_at_log_k() -> None:
    assert entropy_continuity(0.9, 10) == pytest.approx(math.log(10))
    assert entropy_continuity(1, 10) == pytest.approx(math.log(10))


def test_a_coin() -> None:
    assert binary_entropy(0) == binary_entropy(1) == 0
    assert binary_entropy(0.25) == pytest.approx(2 * math.log(2) - 0.75 * math.log(3))


def test_a_distance_above_one_is_refused() -> None:
    with pytest.raises(MeadaError, match=r"must be in \[0, 1\], got 1.5"):
        entropy_continuity(1.5, 3)
    with pytest.raises(MeadaError, match="at least 1"):
        term_change_bound(0)


EPSILONS = [1e-6, 0.01, 0.1, 0.3, 0.5]
CLASSES = [2, 3, 10, 100]


def entropy_given_x(joint: np.ndarray) -> float:
    return float(conditional_entropy(torch.from_numpy(joint)))


def deterministic(rng: np.random.Generator, inputs: int, classes: int) -> np.ndarray:
    """A joint law under which Y = f(X), f drawn at random."""
    joint = np.zeros((inputs, classes))
    joint[np.arange(inputs), rng.integers(classes, size=inputs)] = rng.dirichlet(np.ones(inputs))
    return joint


def noisy(rng: np.random.Generator, joint: np.ndarray, epsilon: float, spread: float) -> np.ndarray:
    """A law within 1-norm epsilon and the same marginal of X; ``spread`` shapes its errors."""
    p_x = joint.sum(1)
    errs = rng.dirichlet(np.full(len(p_x), spread)) * epsilon / 2  # mass that leaves f(x), per x
    errs = np.minimum(errs, p_x)
    towards = rng.dirichlet(np.full(joint.shape[1], spread), len(p_x)) + 1e-9
    towards[joint > 0] = 0
    towards /= towards.sum(1, keepdims=True)
    return joint - (joint > 0) * errs[:, None] + errs[:, None] * towards


def test_the_bound_worked_out_by_hand() -> None:
    assert conditional_entropy_bound(0.5, 2) == pytest.approx(2 * math.log(2))  # log(16) / 2
    assert conditional_entropy_bound(1 / 8, 2) == pytest.approx(0.75 * math.log(2))  # log(64) / 8
    assert conditional_entropy_bound(0, 10) == 0.0


@pytest.mark.parametrize("epsilon", [-1e-9, 0.5000001, 2.0, math.nan, math.inf])
def test_outside_its_domain_the_bound_is_an_error(epsilon: float) -> None:
    with pytest.raises(MeadaError, match=r"epsilon.*\[0, 0.5\]"):
        conditional_entropy_bound(epsilon, 10)
    with pytest.raises(MeadaError, match=r"epsilon.*\[0, 0.5\]"):
        conditional_entropy_difference_bound(epsilon, 10)


def test_a_label_needs_a_class() -> None:
    with pytest.raises(MeadaError, match="classes"):
        conditional_entropy_bound(0.1, 0)


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_corollary_1_over_random_laws_within_epsilon(epsilon: float, classes: int) -> None:
    rng = np.random.default_rng([classes, int(1e6 * epsilon)])
    for _ in range(100):
        p = deterministic(rng, inputs=int(rng.integers(1, 9)), classes=classes)
        q = noisy(rng, p, epsilon, spread=float(rng.choice([0.05, 1.0, 1e6])))
        np.testing.assert_allclose(q.sum(1), p.sum(1), atol=1e-12)
        assert abs(p - q).sum() <= epsilon + 1e-12
        h = entropy_given_x(q)
        assert h <= sharp_conditional_entropy_bound(epsilon, classes) + 1e-9
        assert h <= conditional_entropy_bound(epsilon, classes)


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_worst_law_reaches_the_sharp_bound_and_stays_below_the_printed_one(epsilon: float, classes: int) -> None:
    rng = np.random.default_rng(classes)
    p = deterministic(rng, inputs=5, classes=classes)
    p_x = p.sum(1, keepdims=True)
    off = p_x * epsilon / 2 / (classes - 1)  # each x errs alike, evenly over the other classes
    q = np.where(p > 0, p_x * (1 - epsilon / 2), off)
    assert abs(p - q).sum() == pytest.approx(epsilon)
    h = entropy_given_x(q)
    assert h == pytest.approx(sharp_conditional_entropy_bound(epsilon, classes), abs=1e-12)
    assert h < conditional_entropy_bound(epsilon, classes)


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_lemma_3_over_pairs_of_noisy_laws(epsilon: float, classes: int) -> None:
    rng = np.random.default_rng([classes, int(1e6 * epsilon), 3])
    for _ in range(100):
        inputs, shape = int(rng.integers(1, 6)), float(rng.choice([0.02, 0.3, 3.0]))
        p_x = rng.dirichlet(np.ones(inputs))[:, None]
        one, other = rng.dirichlet(np.full(classes, shape), (2, inputs))
        distance = abs(p_x * (one - other)).sum()
        p = p_x * one
        q = p + min(1.0, epsilon / max(distance, 1e-12)) * p_x * (other - one)
        assert abs(p - q).sum() <= epsilon + 1e-12
        difference = abs(entropy_given_x(p) - entropy_given_x(q))
        assert difference <= sharp_conditional_entropy_bound(epsilon, classes) + 1e-9
        assert difference <= conditional_entropy_difference_bound(epsilon, classes)


@pytest.mark.parametrize("classes", [2, 3, 5, 10, 100, 1000])
def test_the_printed_bound_holds_for_the_1_norm_and_for_the_total_variation(classes: int) -> None:
    for epsilon in np.linspace(1e-9, 0.5, 500):
        printed = conditional_entropy_bound(float(epsilon), classes)
        assert sharp_conditional_entropy_bound(float(epsilon), classes) <= printed
        assert sharp_conditional_entropy_bound(2 * float(epsilon), classes) <= printed


@pytest.mark.parametrize("classes", [2, 3, 5, 10, 100, 1000])
def test_beyond_one_half_the_printed_expression_only_says_less_than_log_k(classes: int) -> None:
    for epsilon in np.linspace(0.5, 2, 300):
        assert -epsilon * math.log(epsilon / classes**3) >= math.log(classes)


@pytest.mark.parametrize(("classes", "trivial_from"), [(2, 0.1837), (10, 0.2817), (100, 0.3071)])
def test_the_printed_bound_says_nothing_long_before_one_half(classes: int, trivial_from: float) -> None:
    assert conditional_entropy_bound(trivial_from - 1e-4, classes) < math.log(classes)
    assert conditional_entropy_bound(trivial_from + 1e-4, classes) > math.log(classes)


def test_log_log_of_the_supplement_is_not_a_number() -> None:
    for epsilon in EPSILONS:
        assert math.log(epsilon / 10**3) < 0
        with pytest.raises(ValueError):
            math.log(math.log(epsilon / 10**3))


@pytest.mark.parametrize("scale", [0.3, 3.0, 10.0, 30.0])
def test_the_softmax_label_is_as_far_from_a_function_as_the_distance_says(scale: float) -> None:
    generator = torch.Generator().manual_seed(0)
    p = (scale * torch.randn(50, 4, generator=generator)).softmax(-1)
    distances = [
        float((p - torch.eye(4)[choice]).abs().sum(-1).mean())
        for choice in [p.argmax(-1), *torch.randint(4, (100, 50), generator=generator)]
    ]
    epsilon = float(distance_to_deterministic(p))
    assert epsilon == pytest.approx(distances[0], abs=1e-14)
    assert epsilon <= min(distances) + 1e-14
    h = float(mean_prediction_entropy(p))
    assert h <= sharp_conditional_entropy_bound(epsilon, 4) + 1e-12
    if epsilon <= 0.5:
        assert h <= conditional_entropy_bound(epsilon, 4)


def test_climbing_h_to_the_top_leaves_the_corollary_behind() -> None:
    uniform = torch.full((5, 10), 0.1)
    assert float(distance_to_deterministic(uniform)) == pytest.approx(1.8)
    with pytest.raises(MeadaError):
        conditional_entropy_bound(float(distance_to_deterministic(uniform)), 10)
