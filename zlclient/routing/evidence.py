"""What the numbers of two arms say about one gate: shown, refuted, or how much more it would take.

Every kind of gate becomes an `Evidence`, which can be asked the same question of a larger sample of the same kind: the
forecast of how many requests are missing is the gate itself, at a multiple of today's counts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import ceil, inf, log, sqrt

from .evalues import (
    RateTest,
    Side,
    TwoRateTest,
    difference_interval,
    mean_radius,
    quantile_ranks,
    rate_interval,
)
from .gates import Gate

_MOST = 1e9


class Evidence(ABC):
    """One gate, judged by the `n` requests of an arm (`pairs` of two arms, where the gate is relative).

    `estimate` and `interval` are on the scale of what is compared with `bound`: the metric itself, or treatment −
    factor·control.
    """

    n: int
    estimate: float
    bound: float

    @abstractmethod
    def shown(self, alpha: float, scale: float = 1.0) -> bool:
        """Whether `scale` times this much of the same evidence shows that the gate is met."""

    @abstractmethod
    def refuted(self, alpha: float) -> bool:
        """Whether it is shown that the gate is not met."""

    @abstractmethod
    def interval(self, alpha: float) -> tuple[float, float]:
        """A confidence sequence for `estimate`."""

    def log_e(self) -> float | None:
        """The log e-value against the gate, where the kind has one."""
        return None

    def needed(self, alpha: float) -> int | None:
        """How many more requests of this kind show the gate; None if it would take a billion or more."""
        low, high = 1.0, 2.0
        while not self.shown(alpha, high):
            low, high = high, high * 2
            if high * self.n > _MOST:
                return None
        while (high - low) * self.n > 1 and high - low > 1e-4 * low:
            middle = (low + high) / 2
            if self.shown(alpha, middle):
                high = middle
            else:
                low = middle
        return ceil((high - 1) * self.n)


class RateEvidence(Evidence):
    """A share against a fixed bound; a quantile too, as the share of requests beyond its bound."""

    def __init__(self, gate: Gate, values: Sequence[float]) -> None:
        self._gate, self._values = gate, values
        self.n, self.bound = len(values), gate.offset
        more_is_bad, metric = gate.direction == "<", gate.metric
        if metric.kind == "rate":
            events = sum(1 for value in values if value)
            self._bad = events if more_is_bad else self.n - events
            limit = self.bound if more_is_bad else 1 - self.bound
            self.estimate = events / self.n
        else:
            self._bad = sum(1 for value in values if (value > self.bound if more_is_bad else value < self.bound))
            limit = 1 - metric.q if more_is_bad else metric.q
            self.estimate = quantile(sorted(values), metric.q)
        self._for, self._against = RateTest(limit, "below"), RateTest(limit, "above")

    def shown(self, alpha: float, scale: float = 1.0) -> bool:
        """See `Evidence`."""
        return self._for.log_e(self._bad * scale, self.n * scale) >= log(1 / alpha)

    def refuted(self, alpha: float) -> bool:
        """See `Evidence`."""
        return self._against.log_e(self._bad, self.n) >= log(1 / alpha)

    def log_e(self) -> float:
        """See `Evidence`."""
        return self._against.log_e(self._bad, self.n)

    def interval(self, alpha: float) -> tuple[float, float]:
        """See `Evidence`."""
        if self._gate.metric.kind == "quantile":
            return _quantile_interval(sorted(self._values), self._gate.metric.q, alpha)
        low, high = rate_interval(self._bad, self.n, alpha)
        return (low, high) if self._gate.direction == "<" else (1 - high, 1 - low)


class TwoRateEvidence(Evidence):
    """A share against the control's, in pairs of one request of each arm in the order they came."""

    def __init__(self, gate: Gate, treatment: Sequence[float], control: Sequence[float]) -> None:
        self._gate = gate
        self.n, self.bound = min(len(treatment), len(control)), gate.offset
        self._treatment = sum(1 for value in treatment[: self.n] if value)
        self._control = sum(1 for value in control[: self.n] if value)
        self.estimate = (self._treatment - gate.factor * self._control) / self.n

    def shown(self, alpha: float, scale: float = 1.0) -> bool:
        """See `Evidence`."""
        return self._log_e("below", scale) >= log(1 / alpha)

    def refuted(self, alpha: float) -> bool:
        """See `Evidence`."""
        return self._log_e("above") >= log(1 / alpha)

    def log_e(self) -> float:
        """See `Evidence`."""
        return self._log_e("above")

    def interval(self, alpha: float) -> tuple[float, float]:
        """See `Evidence`; for a factor other than 1, from the two arms' own intervals."""
        factor = self._gate.factor
        if factor == 1.0:
            return difference_interval(self._treatment, self._control, self.n, alpha)
        low_t, high_t = rate_interval(self._treatment, self.n, alpha / 2)
        low_c, high_c = rate_interval(self._control, self.n, alpha / 2)
        return low_t - factor * high_c, high_t - factor * low_c

    def _log_e(self, side: Side, scale: float = 1.0) -> float:
        factor, offset, pairs = self._gate.factor, self._gate.offset, self.n * scale
        treatment, control = self._treatment * scale, self._control * scale
        if self._gate.direction == "<":
            return TwoRateTest(factor, offset, side).log_e(treatment, control, pairs)
        # Turned into failures: 1 − t ≤ factor·(1 − c) + 1 − factor − offset says the same as t ≥ factor·c + offset.
        return TwoRateTest(factor, 1 - factor - offset, side).log_e(pairs - treatment, pairs - control, pairs)


class IntervalEvidence(Evidence):
    """Evidence judged by its confidence sequence alone: on which side of the bound all of it lies."""

    _gate: Gate

    @abstractmethod
    def interval(self, alpha: float, scale: float = 1.0) -> tuple[float, float]:
        """See `Evidence`; `scale` as in `shown`."""

    def shown(self, alpha: float, scale: float = 1.0) -> bool:
        """See `Evidence`."""
        low, high = self.interval(alpha, scale)
        return high <= self.bound if self._gate.direction == "<" else low >= self.bound

    def refuted(self, alpha: float) -> bool:
        """See `Evidence`."""
        low, high = self.interval(alpha)
        return low > self.bound if self._gate.direction == "<" else high < self.bound


class QuantileEvidence(IntervalEvidence):
    """A quantile against the control's, by the two arms' confidence sequences."""

    def __init__(self, gate: Gate, treatment: Sequence[float], control: Sequence[float]) -> None:
        self._gate = gate
        self.n, self.bound = min(len(treatment), len(control)), gate.offset
        self._treatment, self._control = sorted(treatment), sorted(control)
        q = gate.metric.q
        self.estimate = quantile(self._treatment, q) - gate.factor * quantile(self._control, q)

    def interval(self, alpha: float, scale: float = 1.0) -> tuple[float, float]:
        """See `Evidence`."""
        q, factor = self._gate.metric.q, self._gate.factor
        low_t, high_t = _quantile_interval(self._treatment, q, alpha / 2, scale)
        low_c, high_c = _quantile_interval(self._control, q, alpha / 2, scale)
        return low_t - factor * high_c, high_t - factor * low_c


class MeanEvidence(IntervalEvidence):
    """A mean, by an asymptotic confidence sequence; the control is empty for a fixed bound."""

    def __init__(self, gate: Gate, treatment: Sequence[float], control: Sequence[float]) -> None:
        self._gate, factor = gate, gate.factor
        self.n = min(len(treatment), len(control)) if gate.relative else len(treatment)
        self.bound = gate.offset
        mean_t, variance_t = _moments(treatment)
        mean_c, variance_c = _moments(control) if gate.relative else (0.0, 0.0)
        self.estimate = mean_t - factor * mean_c
        self._deviation = sqrt(variance_t + factor**2 * variance_c)

    def interval(self, alpha: float, scale: float = 1.0) -> tuple[float, float]:
        """See `Evidence`."""
        radius = mean_radius(self._deviation, self.n * scale, alpha)
        return self.estimate - radius, self.estimate + radius


def gather(gate: Gate, treatment: Sequence[float], control: Sequence[float]) -> Evidence | None:
    """The evidence about `gate`; None where an arm that it needs has no data."""
    if not treatment or (gate.relative and not control):
        return None
    if gate.metric.kind == "mean":
        return MeanEvidence(gate, treatment, control)
    if not gate.relative:
        return RateEvidence(gate, treatment)
    kind = TwoRateEvidence if gate.metric.kind == "rate" else QuantileEvidence
    return kind(gate, treatment, control)


def quantile(ordered: Sequence[float], q: float) -> float:
    """The smallest sample with at least `q` of all at or below it: always a value that was measured."""
    return ordered[min(max(ceil(q * len(ordered) - 1e-9) - 1, 0), len(ordered) - 1)]


def _quantile_interval(ordered: Sequence[float], q: float, alpha: float, scale: float = 1.0) -> tuple[float, float]:
    n = len(ordered)
    low, high = quantile_ranks(round(n * scale), q, alpha)
    bottom, top = int(low / scale), ceil(high / scale)
    return ordered[bottom - 1] if bottom else -inf, ordered[top] if top < n else inf


def _moments(values: Sequence[float]) -> tuple[float, float]:
    mean = sum(values) / len(values)
    return mean, sum((value - mean) ** 2 for value in values) / len(values)
