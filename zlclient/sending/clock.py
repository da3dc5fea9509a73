"""Time, injected: tests hand in a clock that waits 3 s in no time."""

from __future__ import annotations

import asyncio
import time
from datetime import date
from typing import Protocol


class Clock(Protocol):
    """Where the client reads and spends time."""

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...

    async def asleep(self, seconds: float) -> None:
        """Wait without blocking the event loop."""
        ...

    def today(self) -> date:
        """The calendar day, for retirement dates."""
        ...


class SystemClock:
    """The real one."""

    monotonic = staticmethod(time.perf_counter)

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    async def asleep(self, seconds: float) -> None:
        """Wait without blocking the event loop."""
        await asyncio.sleep(seconds)

    def today(self) -> date:
        """The local calendar day."""
        return date.today()
