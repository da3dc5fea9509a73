"""Deterministic bucketing, bit for bit as GrowthBook does it.

The rules are those of the public GrowthBook SDK specification 0.8.0 (MIT), so a unit lands in the same bucket here
and in every GrowthBook SDK: FNV-1a with 32 bits, 10,000 buckets for version 2, ranges closed below and open above.
Everything here is a pure function of its arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

Range = list[float]
"""[low, high): a pair, as a list because the public vectors hold it so."""

_OFFSET = 0x811C9DC5
_PRIME = 0x01000193
_MASK = 0xFFFFFFFF


def hash_unit(seed: str, value: str, version: int = 2) -> float | None:
    """Where `value` lies in [0, 1) under `seed`; None for a `version` other than 1 and 2.

    Version 2 hashes twice, which removes the bias between experiments that version 1 has, and gives multiples of
    1/10,000; version 1 gives multiples of 1/1,000 and is kept for experiments that began with it.
    """
    if version == 2:
        inner = _fnv1a(_code_units(value), seed_state(seed))
        return _fnv1a(str(inner).encode()) % 10_000 / 10_000
    if version == 1:
        return _fnv1a(_code_units(value + seed)) % 1_000 / 1_000
    return None


def equal_weights(n: int) -> list[float]:
    """`n` equal weights, rounded to 8 decimals as the specification gives them; empty for n below 1."""
    return [round(1 / n, 8)] * n if n > 0 else []


def bucket_ranges(n: int, coverage: float = 1.0, weights: Sequence[float] | None = None) -> list[Range]:
    """The range of each of `n` variations.

    Each starts where the weights before it end and is `coverage` of its weight long, so growing the coverage only
    adds units. As the specification asks, a coverage outside [0, 1] is clipped, and weights of another number or
    with a sum off 1 by more than 0.01 become equal: whoever reads a configuration must refuse them earlier.
    """
    coverage = min(max(coverage, 0.0), 1.0)
    if weights is None or len(weights) != n or not 0.99 <= sum(weights) <= 1.01:
        weights = [1 / n] * n if n > 0 else []
    ranges: list[Range] = []
    start = 0.0
    for weight in weights:
        ranges.append([start, start + coverage * weight])
        start += weight
    return ranges


def choose_variation(n: float, ranges: Iterable[Sequence[float]]) -> int:
    """The index of the first range holding `n`, or -1."""
    for index, (low, high) in enumerate(ranges):
        if low <= n < high:
            return index
    return -1


def in_namespace(unit: str, namespace: Sequence[str | float]) -> bool:
    """Whether `unit` falls in `namespace` = (name, low, high): experiments with disjoint parts never share units."""
    name, low, high = namespace
    place = hash_unit(f"__{name}", unit, 1)
    return place is not None and float(low) <= place < float(high)


@lru_cache(maxsize=1024)
def seed_state(seed: str) -> int:
    """The hash after `seed`: the part of version 2 that is the same for every unit of an experiment."""
    return _fnv1a(_code_units(seed))


def _fnv1a(units: Iterable[int], state: int = _OFFSET) -> int:
    for unit in units:
        state = (state ^ unit) * _PRIME & _MASK
    return state


def _code_units(text: str) -> Iterable[int]:
    # The reference hashes UTF-16 code units; for ASCII these are the bytes, which are quicker to walk.
    if text.isascii():
        return text.encode()
    return memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")
