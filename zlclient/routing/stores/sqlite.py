"""The default store: one SQLite file in WAL mode, shared by the processes of a machine."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any
from weakref import ref

from ...sqlite_wal import connect_wal
from . import StoreUnavailable
from .relational import Dialect, Parameters, RelationalStore, Transaction

_BUSY_SECONDS = 5.0


class SqliteStore(RelationalStore):
    """One connection a process, behind a lock. `path` is created, folder included, at the first use.

    SQLite keeps its locks in the process's memory and the kernel does not pass them on to a forked child, so a
    connection that lives through a fork can end in a deadlock or a damaged file. It is closed before every fork.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(Dialect(serial="INTEGER PRIMARY KEY AUTOINCREMENT", greatest="max"))
        self.path = path
        self.lock = RLock()
        self._connection: sqlite3.Connection | None = None
        mine = ref(self)
        if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
            os.register_at_fork(
                before=lambda: _before_fork(mine()),
                after_in_parent=lambda: _after_fork(mine()),
                after_in_child=lambda: _after_fork(mine()),
            )

    @contextmanager
    def transaction(self, *, writes: bool) -> Generator[Transaction]:
        """See `RelationalStore`."""
        with self.lock:
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
        with self.lock:
            if self._connection:
                self._connection.close()
                self._connection = None

    def _connect(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # In WAL mode NORMAL cannot corrupt; a power cut may lose the last moments of evidence, which is fine.
        connection = connect_wal(self.path, synchronous="NORMAL", busy_seconds=_BUSY_SECONDS)
        try:
            connection.execute("BEGIN IMMEDIATE")
            self.create(_Transaction(connection))
            connection.commit()
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection


def _before_fork(store: SqliteStore | None) -> None:
    if store:
        # Held over the fork, so that no other thread is inside SQLite while it happens.
        store.lock.acquire()
        store.close()


def _after_fork(store: SqliteStore | None) -> None:
    if store:
        store.lock.release()


class _Transaction:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def change(self, statement: str, parameters: Parameters | Sequence[Parameters]) -> int:
        if isinstance(parameters, Mapping):
            return self._connection.execute(statement, parameters).rowcount
        return self._connection.executemany(statement, parameters).rowcount

    def rows(self, statement: str, parameters: Parameters) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement, parameters).fetchall()
