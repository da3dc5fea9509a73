"""Estimates with bootstrap intervals, from rows that were measured together (a prompt's, a document's)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..safetensors import Array

Statistic = Callable[[Array], Array]  # of tables (..., rows, columns), a number (...) each
RESAMPLES, LEVEL = 1000, 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its 95 % interval; `low` = `high` where nothing varied."""

    value: float
    low: float
    high: float

    def plain(self, name: str = "value") -> dict[str, float]:
        """For JSON, the value under `name`."""
        return {name: round(self.value, 4), "low": round(self.low, 4), "high": round(self.high, 4)}


def bootstrap(rows: Sequence[Sequence[float]] | Array, statistic: Statistic, *, seed: int = 0) -> Estimate:
    """`statistic` of rows (n, k), and the percentile interval over resampled rows.

    Rows are resampled whole, so what stands in one row (both generations on one prompt, all questions about one
    document) stays together.

    Raises:
        ValueError: there are no rows.
    """
    table = np.asarray(rows, float)
    if not len(table):
        raise ValueError("an interval needs at least one row")
    picks = np.random.default_rng(seed).integers(0, len(table), (RESAMPLES, len(table)))
    low, high = np.quantile(statistic(table[picks]), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(float(statistic(table)), float(low), float(high))


def paired_ratio(above: Sequence[float], below: Sequence[float], statistic: Statistic, *, seed: int = 0) -> Estimate:
    """statistic(above) / statistic(below); pairs are resampled together, as they were measured on the same prompts."""
    return bootstrap(
        np.column_stack([above, below]), lambda rows: statistic(rows[..., :1]) / statistic(rows[..., 1:]), seed=seed
    )


def median(rows: Array) -> Array:
    """The middle value of one column."""
    return np.quantile(rows[..., 0], 0.5, axis=-1)


def p95(rows: Array) -> Array:
    """The 95th percentile of one column."""
    return np.quantile(rows[..., 0], 0.95, axis=-1)


def total(rows: Array) -> Array:
    """The sum of one column."""
    return rows[..., 0].sum(-1)


def mean(rows: Array) -> Array:
    """The mean of one column."""
    return rows[..., 0].mean(-1)


def slope(x: Array, y: Array) -> Array:
    """Of the least-squares lines through points x (n,) and y (..., n)."""
    centred = x - x.mean()
    return y @ centred / (centred @ centred)


def pearson(rows: Array) -> Array:
    """Correlation of two columns, point-biserial where one holds 0 and 1; 0 where a column does not vary."""
    one, other = np.moveaxis(rows - rows.mean(-2, keepdims=True), -1, 0)
    size = np.sqrt((one**2).sum(-1) * (other**2).sum(-1))
    return np.where(size > 0, (one * other).sum(-1) / np.where(size > 0, size, 1), 0.0)


def spearman(rows: Array) -> Array:
    """Rank correlation of two columns, ties at their mean rank."""
    return pearson(np.stack([np.apply_along_axis(_ranks, -1, rows[..., column]) for column in (0, 1)], -1))


def _ranks(values: Array) -> Array:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = counts.cumsum()
    return (last - (counts - 1) / 2)[inverse]
