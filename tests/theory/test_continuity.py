"""The supplement's first inequality, where it is true and where not; the sharp continuity bound."""

import math

import numpy as np
import pytest
from scipy.stats import entropy as scipy_entropy

from meada.errors import MeadaError
from meada.theory import binary_entropy, entropy_continuity, term_change_bound


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
