"""Ending a stream from outside the thread that waits for it, when whoever asked is gone.

A server makes a Departure for each request, sets it as CURRENT where it calls the engine, and lets it happen when the
client goes. An engine that is called without one lacks nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar


class Departure:
    """Happens once or never; from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._happened = False
        self._calls: list[Callable[[], object]] = []

    def then(self, call: Callable[[], object]) -> None:
        """Call `call` when it happens; at once if it has."""
        with self._lock:
            if not self._happened:
                self._calls.append(call)
                return
        call()

    def happen(self) -> None:
        """The client is gone."""
        with self._lock:
            self._happened, calls, self._calls = True, self._calls, []
        for call in calls:
            call()


CURRENT: ContextVar[Departure | None] = ContextVar("departure", default=None)
