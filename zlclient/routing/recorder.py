"""The buffer between a request and the store: adding is a few microseconds, never blocks and never raises.

What does not fit while the store is away is dropped and counted, and the count itself is written to the history once
the store is back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Lock

from .records import Exposure, Outcome, Shadow
from .state import Event
from .stores import Store, StoreUnavailable

Item = Exposure | Outcome | Shadow


@dataclass(slots=True)
class Counts:
    """What became of the items of this process; `store_errors` counts failed calls of any kind."""

    written: int = 0
    dropped: int = 0
    store_errors: int = 0


class Recorder:
    """A bounded buffer with batched, idempotent writes. Order is kept."""

    def __init__(self, store: Store, bound: int = 20_000, batch: int = 1_000) -> None:
        self._store, self._bound, self._batch = store, bound, batch
        self._buffer: deque[Item] = deque()
        self._lock = Lock()
        self._reported = 0
        self.counts = Counts()

    def __len__(self) -> int:
        return len(self._buffer)

    @property
    def pressing(self) -> bool:
        """Whether a batch is full, so that waiting for the next turn gains nothing."""
        return len(self._buffer) >= self._batch

    def add(self, item: Item) -> None:
        """Take `item`, or count it as dropped."""
        if len(self._buffer) < self._bound:
            self._buffer.append(item)
        else:
            self.counts.dropped += 1

    def flush(self) -> None:
        """Write everything that is buffered now.

        Raises:
            StoreUnavailable: what was not written stays buffered.
        """
        with self._lock:
            for _ in range(len(self._buffer) // self._batch + 1):
                items = [self._buffer[place] for place in range(min(self._batch, len(self._buffer)))]
                if not items:
                    return
                self._store.write([item.record() for item in items])
                for _ in items:
                    self._buffer.popleft()
                self.counts.written += len(items)

    def report_drops(self, names: Iterable[str], now: float, by: str) -> None:
        """Write to the history how many were dropped since the last report, if any."""
        lost = self.counts.dropped - self._reported
        if lost:
            for name in names:
                reason = f"{lost} exposures or outcomes were dropped while the store was away"
                self._store.note(Event(name, 0, "note", 0, now, by, reason))
            self._reported += lost

    def attempt(self, action: Callable[[], object]) -> bool:
        """Run `action`; count a failure of the store instead of raising it."""
        try:
            action()
        except StoreUnavailable:
            self.counts.store_errors += 1
            return False
        return True

    def after_fork(self) -> None:
        """In a child: what is buffered is the parent's to write, and its lock may be held for ever."""
        self._buffer, self._lock, self._reported, self.counts = deque(), Lock(), 0, Counts()
