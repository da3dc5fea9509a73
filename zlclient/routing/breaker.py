"""A circuit breaker for one arm: it stops sending to an arm that fails, and tries again carefully.

closed ─(failure share over the window)─▶ open ─(cool-down)─▶ half-open ─(probes succeed)─▶ closed
                                            ▲──────────────(a probe fails)──────┘

Only failures that say something about the arm should be recorded: a request the provider refuses as malformed would
fail anywhere. Times are seconds of a wall clock, because an opening is shared between processes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Literal

from .tables import Table

BreakerState = Literal["closed", "open", "half-open"]


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """Open when at least `failure_rate` of at least `minimum` calls in the last `window` seconds failed.

    After `cooldown` seconds let `probes` calls through; all must succeed to close again.
    """

    failure_rate: float = 0.5
    minimum: int = 10
    window: float = 30.0
    cooldown: float = 30.0
    probes: int = 3

    @staticmethod
    def parse(table: Table) -> BreakerPolicy:
        """From a configuration table."""
        policy = BreakerPolicy(
            failure_rate=table.number("failure_rate", 0.5, 0.01, 1.0),
            minimum=table.integer("minimum", 10, 1, 100_000),
            window=table.duration("window", 30.0),
            cooldown=table.duration("cooldown", 30.0),
            probes=table.integer("probes", 3, 1, 1000),
        )
        table.finish()
        return policy


class Breaker:
    """One arm's breaker; thread-safe. `on_open` is called, outside the lock, with the time it stays open until."""

    def __init__(
        self, policy: BreakerPolicy, clock: Callable[[], float], on_open: Callable[[float], None] | None = None
    ) -> None:
        self._policy, self._clock, self._on_open = policy, clock, on_open
        self._lock = Lock()
        self._calls: deque[tuple[float, bool]] = deque()
        self._failures = 0
        self._open_until: float | None = None
        self._let_through = 0
        self._succeeded = 0
        self._probed = 0.0
        self.opened = 0
        self.rejected = 0

    @property
    def state(self) -> BreakerState:
        """What the next call meets."""
        until = self._open_until
        if until is None:
            return "closed"
        return "open" if self._clock() < until else "half-open"

    def allow(self) -> bool:
        """Whether a call may go to the arm now; in the half-open state this takes one of the probes."""
        if self._open_until is None:
            return True
        with self._lock:
            if self.state == "half-open" and self._take_probe(self._clock()):
                return True
            self.rejected += 1
            return False

    def _take_probe(self, now: float) -> bool:
        if self._let_through == self._policy.probes and now >= self._probed + self._policy.cooldown:
            # Their callers never said what became of them: without this the arm would stay shut for ever.
            self._let_through = self._succeeded
        if self._let_through >= self._policy.probes:
            return False
        self._let_through += 1
        self._probed = now
        return True

    def record(self, ok: bool) -> None:
        """What became of a call that was allowed."""
        with self._lock:
            until = self._record(self._clock(), ok)
        if until is not None and self._on_open:
            self._on_open(until)

    def release(self) -> None:
        """A call that was allowed ended without saying anything about the arm; a probe goes back."""
        with self._lock:
            self._let_through = max(self._let_through - 1, self._succeeded)

    def open_until(self, until: float) -> None:
        """Another process opened the breaker: stay open at least until then."""
        with self._lock:
            if until > self._clock() and until > (self._open_until or 0.0):
                self._open(until)

    def _record(self, now: float, ok: bool) -> float | None:
        if self._open_until is not None:
            # Calls that were under way when the breaker opened are no probes.
            return self._record_probe(now, ok) if now >= self._open_until and self._let_through else None
        self._calls.append((now, ok))
        self._failures += not ok
        while self._calls and self._calls[0][0] < now - self._policy.window:
            self._failures -= not self._calls.popleft()[1]
        count = len(self._calls)
        if count >= self._policy.minimum and self._failures >= self._policy.failure_rate * count and not ok:
            return self._open(now + self._policy.cooldown)
        return None

    def _record_probe(self, now: float, ok: bool) -> float | None:
        if not ok:
            return self._open(now + self._policy.cooldown)
        self._succeeded += 1
        if self._succeeded >= self._policy.probes:
            self._open_until = None
            self._forget()
        return None

    def _open(self, until: float) -> float:
        self._open_until = until
        self.opened += 1
        self._forget()
        return until

    def _forget(self) -> None:
        self._calls.clear()
        self._failures = self._let_through = self._succeeded = 0
