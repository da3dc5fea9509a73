"""A SQLite file that another process is creating at this moment is waited for."""

import sqlite3
import threading
import time

import pytest

from zlclient.sqlite_wal import connect_wal


@pytest.fixture
def writing(tmp_path):
    """A new file, not in WAL mode yet, with a writer at work: here SQLite itself fails without waiting."""
    writer = sqlite3.connect(tmp_path / "x.db", isolation_level=None, check_same_thread=False)
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("CREATE TABLE t (n INTEGER)")
    yield writer, tmp_path / "x.db"
    writer.close()


def test_a_file_that_is_being_created_is_waited_for(writing):
    writer, path = writing
    timer = threading.Timer(0.1, writer.execute, ["COMMIT"])
    timer.start()
    connection = connect_wal(path, synchronous="NORMAL", busy_seconds=30.0)
    timer.join()
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (0,)
    connection.close()


def test_the_wait_ends(writing):
    _, path = writing
    began = time.monotonic()
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        connect_wal(path, synchronous="NORMAL", busy_seconds=0.05)
    assert time.monotonic() - began >= 0.05


def test_a_file_that_is_no_database_is_refused_at_once(tmp_path):
    (tmp_path / "x.db").write_bytes(b"no database" * 100)
    with pytest.raises(sqlite3.DatabaseError, match="not a database"):
        connect_wal(tmp_path / "x.db", synchronous="NORMAL", busy_seconds=60.0)
