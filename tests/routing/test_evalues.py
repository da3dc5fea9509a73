"""The statistics: against scipy and statsmodels for fixed sizes, and by simulation for what may be read at any time.

Each simulation looks a thousand times (a hundred where noted); its seed is fixed, and its bound leaves four standard
errors above the promised level.
"""

from functools import cache
from math import exp, inf, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from zlclient.routing.evalues import (
    RateTest,
    TwoRateTest,
    difference_interval,
    mean_radius,
    quantile_ranks,
    rate_interval,
)
from zlclient.routing.ratio import check_ratio, chi_square_tail
from zlclient.routing.samplesize import always_valid_requests, requests_for_rate, requests_per_arm

PASS, ROLL_BACK = log(1 / 0.05), log(1 / 0.001)


def most(alpha: float, runs: int) -> float:
    return alpha + 4 * sqrt(alpha * (1 - alpha) / runs)


# Fixed sizes.


@pytest.mark.parametrize(
    ("bound", "errors", "alpha", "expected"),
    [
        (0.01, 0, 0.05, 300),
        (0.01, 0, 0.01, 461),
        (0.001, 0, 0.05, 2_996),
        (0.001, 0, 0.01, 4_606),
        (0.0001, 0, 0.05, 29_958),
        (0.0001, 0, 0.01, 46_052),
        (0.01, 1, 0.05, 475),
        (0.001, 3, 0.05, 7_754),
        (0.0001, 3, 0.05, 77_537),
        (0.0001, 10, 0.05, 169_623),
    ],
)
def test_requests_for_a_rate(bound, errors, alpha, expected):
    stats = pytest.importorskip("scipy.stats")
    assert abs(requests_for_rate(bound, errors, alpha) - expected) <= 1
    assert requests_for_rate(bound, errors, alpha) == int(
        np.ceil(stats.chi2.ppf(1 - alpha, 2 * (errors + 1)) / (2 * bound))
    )


@pytest.mark.parametrize(("difference", "expected"), [(0.05, 1_319), (0.02, 8_242), (0.01, 32_966)])
def test_requests_per_arm(difference, expected):
    power = pytest.importorskip("statsmodels.stats.power")
    assert requests_per_arm(0.7, difference) == expected
    effect = difference / sqrt(0.7 * 0.3)
    assert power.NormalIndPower().solve_power(effect, alpha=0.05, power=0.8) == pytest.approx(expected, rel=0.002)


@given(st.floats(0, 80), st.integers(1, 12))
def test_chi_square_tail(statistic, freedom):
    stats = pytest.importorskip("scipy.stats")
    assert chi_square_tail(statistic, freedom) == pytest.approx(stats.chi2.sf(statistic, freedom), rel=1e-9)


def test_ratio_check():
    stats = pytest.importorskip("scipy.stats")
    shares = {"a": 0.5, "b": 0.25, "c": 0.25}
    seen = {"a": 5_200, "b": 2_450, "c": 2_350}
    found = check_ratio(seen, shares)
    assert found
    assert found.p == pytest.approx(stats.chisquare([5_200, 2_450, 2_350], [5_000, 2_500, 2_500]).pvalue)
    assert found.mismatch
    assert check_ratio({"a": 0, "b": 0, "c": 0}, shares) is None


# E-values: the table, the trap, and their definition.


@pytest.mark.parametrize(("errors", "expected"), [(0, 32_450), (1, 65_550), (3, 113_400)])
def test_always_valid_requests(errors, expected):
    # The table was made in steps of 50.
    assert expected - 50 <= always_valid_requests(1e-4, errors) <= expected


def test_the_rollback_table():
    test = RateTest(1e-4, "above")
    for n, errors in ((100, 3), (1_000, 4), (10_000, 8)):
        assert next(k for k in range(50) if test.log_e(k, n) >= ROLL_BACK) == errors


def test_no_underflow_makes_a_false_rollback():
    assert RateTest(0.01, "above").log_e(1, 100_000) == pytest.approx(-8.8, abs=0.05)
    for k, n in ((0, 10**9), (1, 10**9), (10**9, 10**9), (5 * 10**8, 10**9)):
        for bound in (1e-6, 0.01, 0.5):
            for side in ("below", "above"):
                assert -inf < RateTest(bound, side).log_e(k, n) < inf


@pytest.mark.parametrize("side", ["below", "above"])
@pytest.mark.parametrize("bound", [1e-4, 0.02, 0.3, 0.5])
def test_an_e_value_is_worth_one_at_most(side, bound):
    """Its expectation at the bound is 1, and further into the null it is less."""
    stats = pytest.importorskip("scipy.stats")
    test, n = RateTest(bound, side), 60
    for p, at_most in ((bound, 1 + 1e-6), (bound * (1.3 if side == "below" else 0.7), 1 + 1e-6)):
        worth = sum(stats.binom.pmf(k, n, p) * exp(test.log_e(k, n)) for k in range(n + 1))
        assert worth <= at_most
    assert sum(stats.binom.pmf(k, n, bound) * exp(test.log_e(k, n)) for k in range(n + 1)) == pytest.approx(1)


@given(
    st.floats(0.5, 2),
    st.floats(-0.3, 0.3),
    st.sampled_from(["below", "above"]),
    st.floats(0.001, 0.999),
    st.floats(0, 1),
)
def test_a_pair_is_worth_one_at_most_anywhere_in_the_null(slope, intercept, side, control, depth):
    """The property that makes `TwoRateTest` valid, checked for single pairs of one request of each arm."""
    border = slope * control + intercept
    if not 0 < border < 1:
        return
    treatment = border + depth * (1 - border) if side == "below" else border * (1 - depth)
    mixture = TwoRateTest(slope, intercept, side).mixture
    t1, t0, c1, c0 = (np.exp(np.array(factor)) for factor in mixture.factors)
    worth = (treatment * t1 + (1 - treatment) * t0) * (control * c1 + (1 - control) * c0)
    assert np.all(worth <= 1 + 1e-6)


# What may be read at any time.


@cache
def boundary(bound: float, side: str, bar: float, peeks: tuple[int, ...]) -> NDArray[np.int64]:
    """The last count that passes at each peek (below; −1 for none), or the first that rolls back (above)."""
    test = RateTest(bound, side)  # type: ignore[arg-type]
    found: list[int] = []
    k = 0
    for n in peeks:
        if side == "below":
            while k <= n and test.log_e(k, n) >= bar:
                k += 1
            found.append(k - 1)
        else:
            k = max(k, 1)
            while test.log_e(k, n) < bar:
                k += 1
            found.append(k)
    return np.array(found)


def paths(p: float, runs: int, step: int, peeks: int, seed: int = 0) -> NDArray[np.int64]:
    return np.random.default_rng(seed).binomial(step, p, (runs, peeks)).cumsum(axis=1)


PEEKS = tuple(range(20, 20_020, 20))


def test_false_promotions_and_rollbacks_over_a_thousand_peeks():
    """At exactly the bound, the worst null: at most 5 % pass, at most 5 % (and 0.1 %) are rolled back."""
    bound, runs = 0.005, 4_000
    counts = paths(bound, runs, 20, 1_000)
    assert (counts <= boundary(bound, "below", PASS, PEEKS)).any(axis=1).mean() <= most(0.05, runs)
    assert (counts >= boundary(bound, "above", PASS, PEEKS)).any(axis=1).mean() <= most(0.05, runs)
    assert (counts >= boundary(bound, "above", ROLL_BACK, PEEKS)).any(axis=1).mean() <= most(0.001, runs)


def test_peeking_at_a_fixed_size_bound_would_pass_bad_arms():
    """Why the gates are not Clopper-Pearson bounds: read a thousand times, these pass a bad arm far too often."""
    stats = pytest.importorskip("scipy.stats")
    bound, runs = 0.005, 1_000
    counts = paths(bound, runs, 20, 1_000)
    upper = stats.beta.ppf(0.95, counts + 1, np.array(PEEKS) - counts)
    assert (upper < bound).any(axis=1).mean() > 0.12


def test_a_good_arm_passes():
    """At a tenth of the bound, by the always-valid size for three errors of the table: 113,400 at 0.01 %."""
    bound, runs = 1e-4, 2_000
    peeks = tuple(range(120, 113_520, 120))
    counts = paths(bound / 10, runs, 120, len(peeks))
    assert (counts <= boundary(bound, "below", PASS, peeks)).any(axis=1).mean() >= 0.95


def test_ten_times_the_error_rate_is_rolled_back_in_time():
    """8 errors in 10,000 requests is the table's rollback; ten times the bound gives 10 by then, 20 by 20,000."""
    bound, runs = 1e-4, 4_000
    peeks = tuple(range(20, 20_020, 20))
    hit = paths(10 * bound, runs, 20, 1_000) >= boundary(bound, "above", ROLL_BACK, peeks)
    assert hit[:, :500].any(axis=1).mean() >= 0.75
    assert hit.any(axis=1).mean() >= 0.99


def log_e_of_pairs(test: TwoRateTest, treatment: NDArray, control: NDArray, pairs: NDArray) -> NDArray:
    weights = np.array(test.mixture.log_weights)
    t1, t0, c1, c0 = (np.array(factor) for factor in test.mixture.factors)
    best = np.full(treatment.shape, -np.inf)
    for w, a, b, c, d in zip(weights, t1, t0, c1, c0, strict=True):
        best = np.logaddexp(best, w + treatment * a + (pairs - treatment) * b + control * c + (pairs - control) * d)
    return best


@pytest.mark.parametrize(
    ("slope", "intercept", "control"), [(1.0, 0.0, 0.3), (1.0, 0.02, 0.3), (1.0, 0.001, 0.002), (1.5, 0.0, 0.02)]
)
def test_two_rates_are_rarely_told_apart_on_the_line(slope, intercept, control):
    runs, step, peeks = 400, 50, 100
    treatment = paths(slope * control + intercept, runs, step, peeks, seed=1)
    base = paths(control, runs, step, peeks, seed=2)
    pairs = np.arange(1, peeks + 1) * step
    for side in ("below", "above"):
        log_e = log_e_of_pairs(TwoRateTest(slope, intercept, side), treatment, base, pairs)
        assert (log_e >= PASS).any(axis=1).mean() <= most(0.05, runs)


def test_two_rates_power():
    """First-contact resolution 70 %: a loss of 5 points beyond the margin is found at thrice the fixed size of 1,319."""
    runs, size = 400, 3 * requests_per_arm(0.7, 0.05)
    rng = np.random.default_rng(3)
    base, worse = rng.binomial(size, 0.3, runs), rng.binomial(size, 0.35, runs)
    pairs = np.full(runs, size)
    assert (log_e_of_pairs(TwoRateTest(1.0, 0.0, "above"), worse, base, pairs) >= PASS).mean() >= 0.8
    fixed = requests_per_arm(0.7, 0.05)
    base, worse = rng.binomial(fixed, 0.3, 4_000) / fixed, rng.binomial(fixed, 0.35, 4_000) / fixed
    z = (worse - base) / np.sqrt((base * (1 - base) + worse * (1 - worse)) / fixed)
    assert (np.abs(z) > 1.96).mean() == pytest.approx(0.8, abs=0.05)


@pytest.mark.parametrize("q", [0.5, 0.95])
def test_a_quantile_stays_in_its_ranks(q):
    runs, step, peeks = 2_000, 10, 1_000
    counts = paths(q, runs, step, peeks)
    ranks = np.array([quantile_ranks(step * (i + 1), q, 0.05) for i in range(peeks)])
    outside = (counts < ranks[:, 0]) | (counts > ranks[:, 1])
    assert outside.any(axis=1).mean() <= most(0.05, runs)


def test_a_mean_stays_in_its_radius_over_a_hundred_peeks():
    """The peeked z-test errs in a third of all A/A comparisons; the confidence sequence keeps its 5 %."""
    runs, peeks, step = 1_000, 100, 50
    samples = np.random.default_rng(4).lognormal(0, 0.5, (runs, peeks * step)).astype(np.float32)
    n = np.arange(1, peeks + 1) * step
    means = samples.cumsum(axis=1)[:, n - 1] / n
    deviation, truth = samples.std(), exp(0.125)
    radius = np.array([mean_radius(float(deviation), int(i), 0.05) for i in n])
    assert (np.abs(means - truth) > radius).any(axis=1).mean() <= most(0.05, runs)
    assert (np.abs(means - truth) > 1.96 * deviation / np.sqrt(n)).any(axis=1).mean() > 0.25
    assert mean_radius(1.0, 49, 0.05) == inf


# Intervals.


@given(st.integers(0, 400), st.integers(1, 400))
def test_an_interval_holds_the_estimate_and_agrees_with_the_test(k, n):
    k = min(k, n)
    low, high = rate_interval(k, n, 0.05)
    assert 0 <= low <= k / n <= high <= 1
    if 0 < high < 1:
        assert RateTest(min(high * 1.01, 1 - 1e-9), "below").log_e(k, n) >= PASS - 0.3


def test_intervals_without_data():
    assert rate_interval(0, 0, 0.05) == (0, 1)
    assert difference_interval(0, 0, 0, 0.05) == (-1, 1)
    assert quantile_ranks(3, 0.5, 0.05) == (0, 3)


def test_a_difference_interval():
    low, high = difference_interval(350, 300, 1_000, 0.05)
    assert low < 0.05 < high
    assert high - low < 0.2
