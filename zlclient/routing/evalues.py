"""Evidence that may be looked at any number of times: e-values and confidence sequences, in log space.

An e-value is a betting score against a null hypothesis: under the null it exceeds 1/α at any time with probability
at most α (Ville's inequality), so a gate may be read after every request. Three families serve every gate:

- `RateTest`: is a rate below or above a fixed bound? A mixture over a grid of alternatives, all on one side of the
  bound. A discrete mixture is exactly valid, whatever the grid; the log-sum-exp cannot underflow.
- `TwoRateTest`: is a treatment's rate below or above a line in the control's rate? Pairs of one request of each arm;
  each alternative is scored against its KL projection on the null (Turner, Ly and Grünwald, 2021), which is exactly
  valid for a half-plane.
- `quantile_ranks` and `mean_radius`: confidence sequences for a quantile (exact) and a mean (asymptotic, after
  Waudby-Smith et al., 2021).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import cos, exp, inf, lgamma, log, log1p, pi, sin, sqrt
from typing import Literal, NamedTuple

Side = Literal["below", "above"]

_NODES = 256
_FLOOR = 1e-12
_SMALL_RATE = 0.02
"""Up to here a rate is an error rate, whose good arms are ten times better; above, a quantile's exceedances."""


class Mixture(NamedTuple):
    """Log weights and, for every observed quantity, the log factor that each alternative gives one observation."""

    log_weights: tuple[float, ...]
    factors: tuple[tuple[float, ...], ...]

    def log_e(self, *counts: float) -> float:
        """The log e-value after `counts` observations of each quantity; fractions are fine, for forecasts."""
        terms = list(self.log_weights)
        for count, factor in zip(counts, self.factors, strict=True):
            if count:
                terms = [term + count * step for term, step in zip(terms, factor, strict=True)]
        return _log_sum_exp(terms)


class RateTest:
    """Evidence about a rate p from k events in n trials: `below` against p ≥ bound, `above` against p ≤ bound."""

    def __init__(self, bound: float, side: Side) -> None:
        if not 0 < bound < 1:
            raise ValueError(f"a rate's bound must lie strictly between 0 and 1, not {bound}")
        self.mixture = _rate_mixture(bound, side)

    def log_e(self, k: float, n: float) -> float:
        """The log e-value of `k` events in `n` trials; act when it reaches log(1/α)."""
        return self.mixture.log_e(k, n - k)


class TwoRateTest:
    """Evidence about a treatment's rate t and a control's rate c: is t below, or above, slope·c + intercept?"""

    def __init__(self, slope: float, intercept: float, side: Side) -> None:
        self.mixture = _two_rate_mixture(slope, intercept, side)

    def log_e(self, treatment: float, control: float, pairs: float) -> float:
        """The log e-value of `treatment` and `control` events in `pairs` of one request of each arm."""
        return self.mixture.log_e(treatment, pairs - treatment, control, pairs - control)


def rate_interval(k: int, n: int, alpha: float) -> tuple[float, float]:
    """The rates that neither side of `RateTest` refutes at `alpha` each: it agrees with what the gates decide."""
    if n == 0:
        return 0.0, 1.0
    bar, middle = log(1 / alpha), k / n
    low = _edge(_FLOOR, middle, lambda p: RateTest(p, "above").log_e(k, n) < bar) if k else 0.0
    high = _edge(1 - _FLOOR, middle, lambda p: RateTest(p, "below").log_e(k, n) < bar) if k < n else 1.0
    return low, high


def difference_interval(treatment: int, control: int, pairs: int, alpha: float) -> tuple[float, float]:
    """The differences treatment − control of two rates that `TwoRateTest` does not refute at `alpha` a side."""
    if pairs == 0:
        return -1.0, 1.0
    bar, middle = log(1 / alpha), (treatment - control) / pairs

    def inside(shift: float, side: Side) -> bool:
        return TwoRateTest(1.0, shift, side).log_e(treatment, control, pairs) < bar

    low = _edge(-1 + 1e-9, middle, lambda shift: inside(shift, "above"), steps=16)
    high = _edge(1 - 1e-9, middle, lambda shift: inside(shift, "below"), steps=16)
    return low, high


def quantile_ranks(n: int, q: float, alpha: float) -> tuple[int, int]:
    """How many of `n` samples may lie at or below the true `q` quantile: a (low, high) that holds at all times.

    So the quantile lies from the low-th smallest sample (−∞ for 0) to the (high + 1)-th (∞ for n).
    """
    bar = log(1 / alpha)
    a, b = 10 * q, 10 * (1 - q)
    constant = lgamma(a + b) - lgamma(a) - lgamma(b) - lgamma(n + a + b)

    def inside(k: int) -> bool:
        mixed = constant + lgamma(k + a) + lgamma(n - k + b)
        return mixed - k * log(q) - (n - k) * log1p(-q) < bar

    centre = min(round(n * q), n)
    return _rank_edge(centre, 0, inside), _rank_edge(centre, n, inside)


def mean_radius(deviation: float, n: float, alpha: float, tuned_for: int = 1000) -> float:
    """The half-width of an asymptotic confidence sequence for a mean; tightest near `tuned_for` samples.

    Infinite below 50 samples, where the normal approximation is not to be trusted.
    """
    if n < 50:
        return inf
    total = n + tuned_for
    return deviation * sqrt(total * log(total / (tuned_for * alpha**2))) / n


@lru_cache(maxsize=512)
def _rate_mixture(bound: float, side: Side) -> Mixture:
    """A Beta(1/2, b) truncated to one side of `bound`, on nodes in log p that crowd at the bound."""
    small = bound <= _SMALL_RATE
    if side == "below":
        mean = bound / 10 if small else bound / 2
        low, high = log(bound) + log(1e-9), log(bound)
    else:
        mean = min(0.5, bound * 10 if small else bound * 2)
        low, high = log(bound), log1p(-1e-12)
    half = (high - low) / 2
    log_weights: list[float] = []
    ones: list[float] = []
    zeros: list[float] = []
    for index in range(_NODES):
        angle = (index + 0.5) * pi / _NODES
        # The node from the nearer end, so that nodes close to the bound keep their digits.
        p = exp(high - half * (1 - cos(angle)))
        log_weights.append(log(sin(angle)) + 0.5 * log(p) + (0.5 / mean - 1) * log1p(-p))
        ones.append(log(p) - log(bound))
        zeros.append(log1p(-p) - log1p(-bound))
    return _normalised(log_weights, ones, zeros)


@lru_cache(maxsize=256)
def _two_rate_mixture(slope: float, intercept: float, side: Side) -> Mixture:
    factors: tuple[list[float], ...] = ([], [], [], [])
    for logit in range(-23, 10):
        control = 1 / (1 + exp(-logit / 2))
        border = slope * control + intercept
        for treatment in _alternatives(control, border, side):
            null_t, null_c = _projection(treatment, control, slope, intercept)
            factors[0].append(log(treatment) - log(null_t))
            factors[1].append(log1p(-treatment) - log1p(-null_t))
            factors[2].append(log(control) - log(null_c))
            factors[3].append(log1p(-control) - log1p(-null_c))
    if not factors[0]:
        # The line leaves no rate on this side, so nothing can ever speak for it.
        return Mixture((0.0,), ((0.0,),) * 4)
    return _normalised([0.0] * len(factors[0]), *factors)


def _alternatives(control: float, border: float, side: Side) -> list[float]:
    """Treatment rates on one side of `border`, near and far; equality with the control among them."""
    if side == "below":
        top = min(border, 1.0)
        found = [top * share for share in (0.99, 0.97, 0.92, 0.85, 0.7, 0.5, 0.25, 0.05)] if top > 0 else []
        found += [control] * 4 if control < border else []
    else:
        rest = 1 - max(border, 0.0)
        base = max(border, 1e-6)
        found = [base + rest * min(step * base, 0.98) for step in (0.02, 0.05, 0.1, 0.25, 0.5, 1, 3, 10, 30)]
        found += [control] * 4 if control > border else []
    return [rate for rate in found if _FLOOR < rate < 1 - _FLOOR and (rate < border) == (side == "below")]


def _projection(treatment: float, control: float, slope: float, intercept: float) -> tuple[float, float]:
    """The point of the line nearest in Kullback-Leibler divergence: the divergence is convex, so bisect its slope."""
    edges = (-intercept / slope, (1 - intercept) / slope)
    low, high = max(_FLOOR, min(edges)), min(1 - _FLOOR, max(edges))
    for _ in range(45):
        c = (low + high) / 2
        t = min(max(slope * c + intercept, _FLOOR), 1 - _FLOOR)
        if slope * (t - treatment) / (t * (1 - t)) + (c - control) / (c * (1 - c)) > 0:
            high = c
        else:
            low = c
    c = (low + high) / 2
    return min(max(slope * c + intercept, _FLOOR), 1 - _FLOOR), c


def _normalised(log_weights: list[float], *factors: list[float]) -> Mixture:
    total = _log_sum_exp(log_weights)
    return Mixture(tuple(weight - total for weight in log_weights), tuple(map(tuple, factors)))


def _log_sum_exp(terms: list[float]) -> float:
    top = max(terms)
    return top + log(sum([exp(term - top) for term in terms]))


def _edge(outer: float, inner: float, inside: Callable[[float], bool], steps: int = 34) -> float:
    """Where `inside` turns false between `inner` and `outer`; `outer` itself if it never does."""
    if inside(outer):
        return outer
    for _ in range(steps):
        middle = (outer + inner) / 2
        if inside(middle):
            inner = middle
        else:
            outer = middle
    return outer


def _rank_edge(inner: int, outer: int, inside: Callable[[int], bool]) -> int:
    if inside(outer):
        return outer
    while abs(outer - inner) > 1:
        middle = (outer + inner) // 2
        if inside(middle):
            inner = middle
        else:
            outer = middle
    return inner
