"""What the SQLite and the SQLAlchemy store share: four tables and the statements on them.

Both drivers take `:name` parameters, so the statements are the same; the few words that differ are in `Dialect`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from ..records import Record
from ..state import Event, State
from . import PAGE, Snapshot

Parameters = Mapping[str, Any]


class Transaction(Protocol):
    """An open transaction of either driver."""

    def change(self, statement: str, parameters: Parameters | Sequence[Parameters]) -> int:
        """Execute, once for each parameters; the number of rows changed."""
        ...

    def rows(self, statement: str, parameters: Parameters) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        ...


_START = """
INSERT INTO zlclient_states SELECT :name, :epoch, :state WHERE :expected = 0 ON CONFLICT DO NOTHING
"""
_SWAP = """
UPDATE zlclient_states SET epoch = :epoch, state = :state WHERE name = :name AND epoch = :expected
"""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The words that differ: a growing key, the larger of two values, and a lock held to the transaction's end."""

    serial: str
    greatest: str
    lock: str | None = None


class RelationalStore(ABC):
    """The statements; a subclass opens transactions and turns its driver's errors into `StoreUnavailable`."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    @abstractmethod
    def transaction(self, *, writes: bool) -> AbstractContextManager[Transaction]:
        """A transaction, committed at its end or rolled back on an error; the tables exist."""

    @abstractmethod
    def close(self) -> None:
        """Give up connections."""

    def create(self, transaction: Transaction) -> None:
        """Create what does not exist; processes that start together wait for one another."""
        self._take_turn(transaction)
        serial = self._dialect.serial
        for statement in (
            "CREATE TABLE IF NOT EXISTS zlclient_states "
            "(name TEXT PRIMARY KEY, epoch BIGINT NOT NULL, state TEXT NOT NULL)",
            f"CREATE TABLE IF NOT EXISTS zlclient_events (seq {serial}, name TEXT NOT NULL, event TEXT NOT NULL)",
            "CREATE TABLE IF NOT EXISTS zlclient_marks "
            "(name TEXT NOT NULL, key TEXT NOT NULL, value DOUBLE PRECISION NOT NULL, PRIMARY KEY (name, key))",
            f"CREATE TABLE IF NOT EXISTS zlclient_records (seq {serial}, kind TEXT NOT NULL, name TEXT NOT NULL, "
            "key TEXT NOT NULL, body TEXT NOT NULL, UNIQUE (kind, name, key))",
            "CREATE INDEX IF NOT EXISTS zlclient_records_by_name ON zlclient_records (name, seq)",
        ):
            transaction.change(statement, {})

    def load(self, names: Sequence[str]) -> dict[str, Snapshot]:
        """See `Store`."""
        with self.transaction(writes=False) as transaction:
            states = dict(transaction.rows("SELECT name, state FROM zlclient_states", {}))
            marks: dict[str, dict[str, float]] = {}
            for name, key, value in transaction.rows("SELECT name, key, value FROM zlclient_marks", {}):
                marks.setdefault(name, {})[key] = value
        return {
            name: Snapshot(State.parse(states[name]) if name in states else None, marks.get(name, {})) for name in names
        }

    def swap(self, name: str, expected: int, state: State, event: Event) -> bool:
        """See `Store`."""
        with self.transaction(writes=True) as transaction:
            won = transaction.change(
                _START if expected == 0 else _SWAP,
                {"name": name, "expected": expected, "epoch": state.epoch, "state": state.dump()},
            )
            if won:
                self._add_event(transaction, event)
        return won == 1

    def note(self, event: Event) -> None:
        """See `Store`."""
        with self.transaction(writes=True) as transaction:
            self._add_event(transaction, event)

    def history(self, name: str) -> list[Event]:
        """See `Store`."""
        with self.transaction(writes=False) as transaction:
            rows = transaction.rows("SELECT event FROM zlclient_events WHERE name = :name ORDER BY seq", {"name": name})
        return [Event.parse(event) for (event,) in rows]

    def write(self, records: Sequence[Record]) -> None:
        """See `Store`. Writers take turns, so that a reader's cursor never passes a record still to be committed."""
        with self.transaction(writes=True) as transaction:
            self._take_turn(transaction)
            self.insert(transaction, records)

    def insert(self, transaction: Transaction, records: Sequence[Record]) -> None:
        """Add the records that are new; a subclass may know a quicker way."""
        transaction.change(
            "INSERT INTO zlclient_records (kind, name, key, body) VALUES (:kind, :name, :key, :body) "
            "ON CONFLICT DO NOTHING",
            [asdict(record) for record in records],
        )

    def read(self, name: str, after: str = "") -> tuple[list[Record], str]:
        """See `Store`."""
        with self.transaction(writes=False) as transaction:
            rows = transaction.rows(
                "SELECT seq, kind, name, key, body FROM zlclient_records "
                "WHERE name IN (:name, '') AND seq > :after ORDER BY seq LIMIT :page",
                {"name": name, "after": int(after or 0), "page": PAGE},
            )
        return [Record(*row[1:]) for row in rows], str(rows[-1][0]) if rows else after

    def raise_mark(self, name: str, key: str, value: float) -> None:
        """See `Store`."""
        self._merge_mark(f"{self._dialect.greatest}(zlclient_marks.value, excluded.value)", name, key, value)

    def add_mark(self, name: str, key: str, value: float) -> None:
        """See `Store`."""
        self._merge_mark("zlclient_marks.value + excluded.value", name, key, value)

    def claim(self, name: str, key: str, now: float, until: float) -> bool:
        """See `Store`."""
        with self.transaction(writes=True) as transaction:
            changed = transaction.change(
                "INSERT INTO zlclient_marks VALUES (:name, :key, :until) ON CONFLICT (name, key) "
                "DO UPDATE SET value = excluded.value WHERE zlclient_marks.value <= :now",
                {"name": name, "key": key, "now": now, "until": until},
            )
        return changed == 1

    def _merge_mark(self, merged: str, name: str, key: str, value: float) -> None:
        with self.transaction(writes=True) as transaction:
            transaction.change(
                "INSERT INTO zlclient_marks VALUES (:name, :key, :value) "  # noqa: S608 - merged is ours
                f"ON CONFLICT (name, key) DO UPDATE SET value = {merged}",
                {"name": name, "key": key, "value": value},
            )

    def _add_event(self, transaction: Transaction, event: Event) -> None:
        transaction.change(
            "INSERT INTO zlclient_events (name, event) VALUES (:name, :event)",
            {"name": event.name, "event": event.dump()},
        )

    def _take_turn(self, transaction: Transaction) -> None:
        if self._dialect.lock:
            transaction.rows(self._dialect.lock, {})
