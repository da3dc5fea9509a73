"""Shadow traffic: the control answers, the treatment gets a copy, and the two answers are compared offline.

The user never waits for the copy. A share of the control's requests is chosen by a hash of the request's id, within
a budget that all processes share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from .tables import Table


@dataclass(frozen=True, slots=True)
class ShadowPolicy:
    """Copy `share` of the control's requests until `budget` US dollars are spent.

    `reserve` is held back for each copy under way until its cost is known, so that many at once cannot overspend.
    """

    share: float
    budget: float
    reserve: float = 0.01

    @staticmethod
    def parse(table: Table) -> ShadowPolicy:
        """From a configuration table."""
        if "budget" not in table:
            table.refuse("budget", None, 'is required, such as "5 USD": shadow traffic is paid for twice')
        policy = ShadowPolicy(
            share=table.number("share", 0.01, 0.0, 1.0),
            budget=table.money("budget", 0.0),
            reserve=table.money("reserve", 0.01),
        )
        table.finish()
        return policy


@dataclass(frozen=True, slots=True)
class Comparison:
    """How a shadow answer differs from the one that was given.

    `checks` maps each check to (control passed, treatment passed); `length_ratio` is treatment over control in
    characters, None for an empty control; `similarity` in [0, 1] compares the answers' character pairs (Dice),
    which suits Chinese and English alike.
    """

    checks: Mapping[str, tuple[bool, bool]]
    length_ratio: float | None
    similarity: float


def compare_answers(
    control: str,
    treatment: str,
    control_checks: Mapping[str, bool] | None = None,
    treatment_checks: Mapping[str, bool] | None = None,
) -> Comparison:
    """Compare two answers to the same request; only checks that both have are kept."""
    first, second = control_checks or {}, treatment_checks or {}
    return Comparison(
        checks={name: (first[name], second[name]) for name in first if name in second},
        length_ratio=len(treatment) / len(control) if control else None,
        similarity=similarity(control, treatment),
    )


def similarity(one: str, other: str) -> float:
    """The Dice coefficient of the two texts' character pairs, counted as often as they occur; 1 for equal texts."""
    if one == other:
        return 1.0
    first, second = _pairs(one), _pairs(other)
    total = first.total() + second.total()
    return 2 * (first & second).total() / total if total else 0.0


def _pairs(text: str) -> Counter[str]:
    return Counter(map("".join, pairwise(text)))
