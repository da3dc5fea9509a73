"""A store inside the process: for tests, and for trying things out. It dies with the process."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from threading import RLock

from ..records import Record
from ..state import Event, State
from . import PAGE, Snapshot


class MemoryStore:
    """Dictionaries behind a lock."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._states: dict[str, State] = {}
        self._marks: defaultdict[str, dict[str, float]] = defaultdict(dict)
        self._events: list[Event] = []
        self._records: list[Record] = []
        self._seen: set[tuple[str, str, str]] = set()

    def load(self, names: Sequence[str]) -> dict[str, Snapshot]:
        """See `Store`."""
        with self._lock:
            return {name: Snapshot(self._states.get(name), dict(self._marks[name])) for name in names}

    def swap(self, name: str, expected: int, state: State, event: Event) -> bool:
        """See `Store`."""
        with self._lock:
            current = self._states.get(name)
            if (current.epoch if current else 0) != expected:
                return False
            self._states[name] = state
            self._events.append(event)
            return True

    def note(self, event: Event) -> None:
        """See `Store`."""
        with self._lock:
            self._events.append(event)

    def history(self, name: str) -> list[Event]:
        """See `Store`."""
        with self._lock:
            return [event for event in self._events if event.name == name]

    def write(self, records: Sequence[Record]) -> None:
        """See `Store`."""
        with self._lock:
            for record in records:
                identity = (record.kind, record.name, record.key)
                if identity not in self._seen:
                    self._seen.add(identity)
                    self._records.append(record)

    def read(self, name: str, after: str = "") -> tuple[list[Record], str]:
        """See `Store`."""
        with self._lock:
            start = int(after or 0)
            found: list[Record] = []
            for place in range(start, len(self._records)):
                if len(found) == PAGE:
                    return found, str(place)
                if self._records[place].name in (name, ""):
                    found.append(self._records[place])
            return found, str(len(self._records))

    def raise_mark(self, name: str, key: str, value: float) -> None:
        """See `Store`."""
        with self._lock:
            self._marks[name][key] = max(value, self._marks[name].get(key, value))

    def add_mark(self, name: str, key: str, value: float) -> None:
        """See `Store`."""
        with self._lock:
            self._marks[name][key] = self._marks[name].get(key, 0.0) + value

    def claim(self, name: str, key: str, now: float, until: float) -> bool:
        """See `Store`."""
        with self._lock:
            if self._marks[name].get(key, 0.0) > now:
                return False
            self._marks[name][key] = until
            return True

    def close(self) -> None:
        """Nothing is held."""
