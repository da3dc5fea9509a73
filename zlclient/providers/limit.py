"""The latest moment of the exchange in progress, which the socket layer obeys.

A read timeout bounds one read, so a body dripped byte by byte outlives any of them. The sender therefore publishes a
moment here, and `clamp` cuts every connect, read and write to the time left until it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar


class Limit:
    """A moment on a monotonic clock that may be moved; `at` None means no limit."""

    __slots__ = ("at", "now")

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.at: float | None = None

    def left(self) -> float | None:
        """Seconds left, at least 0; None without a limit."""
        return None if self.at is None else max(0.0, self.at - self.now())

    def passed(self) -> bool:
        """Whether the moment has come."""
        return self.at is not None and self.now() >= self.at


CURRENT: ContextVar[Limit | None] = ContextVar("zlclient_limit", default=None)


class limited:  # noqa: N801 - used as a statement
    """Puts a limit in force for the socket calls of this thread, inside a with statement."""

    __slots__ = ("_limit", "_token")

    def __init__(self, limit: Limit) -> None:
        self._limit = limit

    def __enter__(self) -> None:
        self._token = CURRENT.set(self._limit)

    def __exit__(self, *_: object) -> None:
        CURRENT.reset(self._token)
