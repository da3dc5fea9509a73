"""The intermediate requests of a call over a document: what each is, what came of it, and how far they are."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from ..reply import Attempt, Usage

if TYPE_CHECKING:
    from ..errors import SendError
    from ..reply import Reply
    from ..request import Request

Phase = Literal["read", "merge"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a call over a document is. `phase` is "read" for its parts, "merge" for the rounds over their answers."""

    phase: Phase
    done: int
    total: int
    failed: int


@dataclass(slots=True, eq=False)
class Job:
    """One intermediate request, made when its turn comes, for the segments at `covers`; then what came of it."""

    phase: Phase
    covers: tuple[int, ...]
    make: Callable[[], Request]
    began: float = 0.0
    reply: Reply | None = None
    error: SendError | None = None

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """Its HTTP exchanges, in seconds since the whole call began."""
        outcome = self.reply or self.error
        return () if outcome is None else shifted(outcome.attempts, self.began)

    @property
    def usage(self) -> Usage:
        """Its tokens, those of a broken answer included."""
        outcome = self.reply or self.error
        return (None if outcome is None else outcome.usage) or Usage()


def shifted(attempts: tuple[Attempt, ...], seconds: float) -> tuple[Attempt, ...]:
    """`attempts` of a call that began `seconds` into a longer one."""
    return tuple(replace(a, started=a.started + seconds, ended=a.ended + seconds) for a in attempts)


class Tally:
    """Counts jobs, and tells the caller's `progress`, one call at a time."""

    def __init__(self, tell: Callable[[Progress], None] | None) -> None:
        self._tell, self._lock = tell, threading.Lock()
        self._now = Progress("read", 0, 0, 0)

    def round(self, jobs: list[Job]) -> None:
        """A round begins."""
        if jobs:
            self._now = Progress(jobs[0].phase, 0, len(jobs), 0)
            self.add()

    def add(self, *, done: int = 0, failed: int = 0) -> None:
        """Jobs of the round are done, or have failed."""
        with self._lock:
            now = self._now
            self._now = replace(now, done=now.done + done, failed=now.failed + failed)
            if self._tell is not None:
                self._tell(self._now)
