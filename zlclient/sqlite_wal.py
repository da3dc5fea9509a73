"""Opening a SQLite file that several processes share: WAL mode, and a wait where another holds the lock."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Literal

_PAUSE_SECONDS = 0.005


def connect_wal(path: Path, *, synchronous: Literal["NORMAL", "FULL"], busy_seconds: float) -> sqlite3.Connection:
    """A connection without implicit transactions, usable from any thread that holds the caller's lock.

    Raises:
        sqlite3.Error: the file cannot be opened, or stays locked for `busy_seconds`.
    """
    connection = sqlite3.connect(path, timeout=busy_seconds, isolation_level=None, check_same_thread=False)
    try:
        _switch_to_wal(connection, busy_seconds)
        connection.execute(f"PRAGMA synchronous = {synchronous}")
    except BaseException:
        connection.close()
        raise
    return connection


def _switch_to_wal(connection: sqlite3.Connection, busy_seconds: float) -> None:
    # Where another process is writing a file that is not in WAL mode yet, SQLite refuses at once, without its busy
    # timeout: two that wait for each other here would never end. The refused one holds no lock and may ask again.
    end = time.monotonic() + busy_seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= end:
                raise
        time.sleep(_PAUSE_SECONDS)
