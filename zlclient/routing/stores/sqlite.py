"""The default store: one SQLite file in WAL mode, shared by the processes of a machine."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

from . import StoreUnavailable
from .relational import Dialect, Parameters, RelationalStore, Transaction

_BUSY_SECONDS = 5.0

# A connection must not be used, nor closed, in a forked child: closing could remove the parent's log under its feet.
# Holding on to it is all that is safe.
_inherited: list[sqlite3.Connection] = []


class SqliteStore(RelationalStore):
    """One connection a process, behind a lock. `path` is created, folder included, at the first use."""

    def __init__(self, path: Path) -> None:
        super().__init__(Dialect(serial="INTEGER PRIMARY KEY AUTOINCREMENT", greatest="max"))
        self.path = path
        self._lock_of = (os.getpid(), RLock())
        self._connection: sqlite3.Connection | None = None

    @contextmanager
    def transaction(self, *, writes: bool) -> Generator[Transaction]:
        """See `RelationalStore`."""
        with self._own_lock():
            try:
                connection = self._connection or self._connect()
                connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
                try:
                    yield _Transaction(connection)
                except BaseException:
                    connection.rollback()
                    raise
                connection.commit()
            except (sqlite3.Error, OSError) as error:
                self.close()
                raise StoreUnavailable(f"SQLite store {self.path.name}: {error}") from error

    def close(self) -> None:
        """Close the connection; the next call opens a new one."""
        with self._own_lock():
            if self._connection:
                self._connection.close()
                self._connection = None

    def _own_lock(self) -> RLock:
        pid, lock = self._lock_of
        if pid != os.getpid():
            # After a fork another thread of the parent may hold the lock for ever.
            if self._connection:
                _inherited.append(self._connection)
            self._connection, lock = None, RLock()
            self._lock_of = (os.getpid(), lock)
        return lock

    def _connect(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            # In WAL mode NORMAL cannot corrupt; a power cut may lose the last moments of evidence, which is fine.
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("BEGIN IMMEDIATE")
            self.create(_Transaction(connection))
            connection.commit()
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection


class _Transaction:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def change(self, statement: str, parameters: Parameters | Sequence[Parameters]) -> int:
        if isinstance(parameters, Mapping):
            return self._connection.execute(statement, parameters).rowcount
        return self._connection.executemany(statement, parameters).rowcount

    def rows(self, statement: str, parameters: Parameters) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement, parameters).fetchall()
