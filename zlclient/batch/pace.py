"""How many requests may be in flight: additive increase, multiplicative decrease, as TCP does it (RFC 5681 §3.1).

Pure: time is handed in. A rate limit halves the bound once for all requests that were sent before it was halved; each
answer then raises it by the bound's own reciprocal, so by about one for every bound's worth of answers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

FIRST_PAUSE = 1.0  # seconds after a rate limit that names no wait; doubled while no answer comes between
LONGEST_PAUSE = 60.0


@dataclass(slots=True)
class Pace:
    """`ceiling` is the most that may ever be in flight, and where it starts."""

    ceiling: int
    bound: float = field(init=False)
    resume: float = field(default=0.0, init=False)
    _cut: float = field(default=float("-inf"), init=False)
    _pause: float = field(default=FIRST_PAUSE, init=False)

    def __post_init__(self) -> None:
        self.bound = float(self.ceiling)

    def has_room(self, in_flight: int) -> bool:
        """Whether one more may be sent, the pause apart."""
        return in_flight < int(self.bound)

    def wait(self, now: float) -> float:
        """Seconds until anything may be sent."""
        return max(0.0, self.resume - now)

    def answered(self) -> None:
        """A request was answered."""
        self.bound = min(float(self.ceiling), self.bound + 1 / self.bound)
        self._pause = FIRST_PAUSE

    def limited(self, sent: float, now: float, retry_after: float | None) -> None:
        """A request sent at `sent` was rate limited; `retry_after` is the wait the provider asked for."""
        if retry_after is not None:
            self.resume = max(self.resume, now + min(retry_after, LONGEST_PAUSE))
        if sent < self._cut:
            return
        self.bound = max(1.0, self.bound / 2)
        self._cut = now
        if retry_after is None:
            self.resume = max(self.resume, now + self._pause)
            self._pause = min(LONGEST_PAUSE, self._pause * 2)
