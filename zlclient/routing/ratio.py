"""The sample-ratio check: do the arms have as many units as they should? If not, no comparison can be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import erfc, exp, gamma, sqrt

SRM_ALPHA = 0.001
"""The usual bar: low enough that ordinary luck, also when looked at often, rarely reaches it."""


@dataclass(frozen=True, slots=True)
class RatioCheck:
    """Units seen and expected by arm, and the chance of a deviation as large as this or larger."""

    seen: Mapping[str, int]
    expected: Mapping[str, float]
    p: float

    @property
    def mismatch(self) -> bool:
        """Whether the assignment, or the recording, is broken."""
        return self.p < SRM_ALPHA


def check_ratio(seen: Mapping[str, int], shares: Mapping[str, float]) -> RatioCheck | None:
    """Pearson's χ² of units `seen` against their `shares`; None without units, or with one arm only."""
    total = sum(seen[arm] for arm in shares)
    if not total or sum(share > 0 for share in shares.values()) < 2:
        return None
    expected = {arm: total * share for arm, share in shares.items() if share > 0}
    statistic = sum((seen[arm] - count) ** 2 / count for arm, count in expected.items())
    return RatioCheck({arm: seen[arm] for arm in expected}, expected, chi_square_tail(statistic, len(expected) - 1))


def chi_square_tail(statistic: float, freedom: int) -> float:
    """P(χ² with `freedom` degrees ≥ `statistic`), by the closed forms for whole and half-whole shapes."""
    half = statistic / 2
    even = freedom % 2 == 0
    tail = exp(-half) if even else erfc(sqrt(half))
    for twice in range(2 if even else 1, freedom, 2):
        shape = twice / 2
        tail += half**shape * exp(-half) / gamma(shape + 1)
    return min(tail, 1.0)
