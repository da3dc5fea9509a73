"""Shadow traffic: the control answers, the treatment gets a copy, and the two answers are compared offline.

The user never waits for the copy. A share of the control's requests is chosen by a hash of the request's id, within
a budget that all processes share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from threading import Lock

from .assignment import hash_unit
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


class ShadowBudget:
    """Chooses the requests to copy, and keeps what all processes spend within the budget.

    What others spent is known as of the last fetch, so together they may overspend by what they copy in that moment.
    """

    def __init__(self, policy: ShadowPolicy) -> None:
        self._policy, self._lock = policy, Lock()
        self._by_all = self._unshared = 0.0
        self._under_way = 0

    @property
    def left(self) -> float:
        """US dollars still to spend, what is reserved for copies under way taken off."""
        return self._policy.budget - self._by_all - self._unshared - self._under_way * self._policy.reserve

    def take(self, request_id: str) -> bool:
        """Whether to copy this request; if so, its reserve is held back until `settle`."""
        place = hash_unit("shadow", request_id, 2)
        if place is None or place >= self._policy.share:
            return False
        with self._lock:
            # A hair below is floating point, not a spent budget.
            if self.left < self._policy.reserve - 1e-9:
                return False
            self._under_way += 1
            return True

    def settle(self, cost: float) -> None:
        """A copy ended and cost this much; 0 if it failed before anything was charged."""
        with self._lock:
            self._under_way -= 1
            self._unshared += cost

    def spent_by_all(self, total: float) -> None:
        """What the store knows of."""
        with self._lock:
            self._by_all = total

    def share(self, add: Callable[[float], None]) -> None:
        """Give what this process spent to the store, through `add`; if that raises it is kept for the next time."""
        cost = self._unshared
        if cost:
            add(cost)
            with self._lock:
                self._unshared -= cost
                self._by_all += cost


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
