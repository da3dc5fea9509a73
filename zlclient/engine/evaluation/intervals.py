"""Ratios of paired measurements, with bootstrap intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..safetensors import Array

Statistic = Callable[[Array], float]
RESAMPLES, LEVEL = 1000, 0.95


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio with its 95 % interval; `low` = `high` where the measurement does not vary."""

    ratio: float
    low: float
    high: float

    def plain(self) -> dict[str, float]:
        """For JSON."""
        return {"ratio": round(self.ratio, 4), "low": round(self.low, 4), "high": round(self.high, 4)}


def paired_ratio(above: Sequence[float], below: Sequence[float], statistic: Statistic, *, seed: int = 0) -> Ratio:
    """statistic(above) / statistic(below); pairs are resampled together, as they were measured on the same prompts."""
    top, bottom = np.asarray(above, float), np.asarray(below, float)
    picks = np.random.default_rng(seed).integers(0, len(top), (RESAMPLES, len(top)))
    ratios = [statistic(top[pick]) / statistic(bottom[pick]) for pick in picks]
    low, high = np.quantile(ratios, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Ratio(statistic(top) / statistic(bottom), float(low), float(high))


def median(values: Array) -> float:
    """The middle value."""
    return float(np.quantile(values, 0.5))


def p95(values: Array) -> float:
    """The 95th percentile."""
    return float(np.quantile(values, 0.95))


def total(values: Array) -> float:
    """The sum."""
    return float(values.sum())
