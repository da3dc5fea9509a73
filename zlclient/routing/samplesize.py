"""How many requests a fixed-size comparison needs; for planning, since the gates themselves may be read at any time."""

from __future__ import annotations

from math import ceil, exp, lgamma, log
from statistics import NormalDist

from .evalues import RateTest


def requests_for_rate(bound: float, errors: int = 0, alpha: float = 0.05) -> int:
    """Requests after which `errors` or fewer errors show a rate below `bound`, looked at once.

    The Poisson bound n = χ²₁₋α(2(errors + 1)) / (2·bound); with no errors this is ln(1/α)/bound.
    """
    low, high = 0.0, 10.0 + 10 * (errors + 1) - log(alpha) * 4
    for _ in range(100):
        middle = (low + high) / 2
        if _poisson_at_most(errors, middle) > alpha:
            low = middle
        else:
            high = middle
    return ceil(high / bound - 1e-9)


def always_valid_requests(bound: float, errors: int = 0, alpha: float = 0.05) -> int:
    """The same for a gate read after every request: the first n at which the e-value reaches 1/α."""
    test, bar = RateTest(bound, "below"), log(1 / alpha)
    low, high = 0, requests_for_rate(bound, errors, alpha)
    while test.log_e(errors, high) < bar:
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        if test.log_e(errors, middle) >= bar:
            high = middle
        else:
            low = middle
    return high


def requests_per_arm(base: float, difference: float, alpha: float = 0.05, power: float = 0.8) -> int:
    """Requests an arm that show a two-sided `difference` from the rate `base` with `power`, looked at once."""
    normal = NormalDist()
    z = normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(power)
    return ceil(2 * base * (1 - base) * (z / difference) ** 2)


def _poisson_at_most(k: int, mean: float) -> float:
    if mean == 0:
        return 1.0
    return sum(exp(i * log(mean) - mean - lgamma(i + 1)) for i in range(k + 1))
