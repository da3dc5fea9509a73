"""What was already asked and answered, by the hash of its content: the memory that makes a run resumable.

An answer is in the ledger before its row counts as done, and stays there: whoever asks the same again, in this run or a
later one, gets it without sending. A failure is kept only until its run ends, so that a broken run does not repeat it
and a new one tries again. Batches under way at a provider are in it before they are created there.

    sqlite:///PATH      a file in WAL mode (the default, beside the output)
    postgresql://…      through SQLAlchemy, shared by machines

Answers are kept as they came: the ledger is as confidential as the output.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Protocol
from uuid import uuid4

from ..errors import ConfigError, ZlclientError
from ..sqlite_wal import connect_wal
from .outcomes import Outcome, json_text

Parameters = Mapping[str, Any]
_BUSY_SECONDS = 30.0

_TABLES = (
    "CREATE TABLE IF NOT EXISTS zlclient_answers (key TEXT PRIMARY KEY, body TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS zlclient_failures "
    "(run TEXT NOT NULL, key TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (run, key))",
    "CREATE TABLE IF NOT EXISTS zlclient_batches (id TEXT PRIMARY KEY, provider TEXT NOT NULL, remote TEXT, "
    "created DOUBLE PRECISION NOT NULL, size BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS zlclient_submitted (key TEXT PRIMARY KEY, batch TEXT NOT NULL)",
)


class LedgerUnavailable(ZlclientError):
    """The ledger could not be reached or refused; nothing that it held is lost."""


@dataclass(frozen=True, slots=True)
class OpenBatch:
    """A batch at a provider. `remote` is the provider's id, None until it is known; `created` seconds since 1970."""

    id: str
    provider: str
    remote: str | None
    created: float
    size: int


class _Database(Protocol):
    """One of the two drivers. `among` is a condition on a column; `keys` gives its parameter."""

    among: str

    def transaction(self) -> Any: ...
    def keys(self, keys: Sequence[str]) -> Any: ...
    def close(self) -> None: ...


class Ledger:
    """The ledger of one run, thread-safe. `run` tells whose failures are whose."""

    def __init__(self, database: _Database, run: str) -> None:
        self._database, self._run = database, run

    def find(self, keys: Sequence[str]) -> dict[str, Outcome]:
        """The outcomes known of `keys`; an answer is preferred to a failure."""
        among = self._database.among
        asked = {"keys": self._database.keys(keys), "run": self._run}
        failures = f"SELECT key, body FROM zlclient_failures WHERE run = :run AND key {among}"  # noqa: S608 - ours
        with self._database.transaction() as rows:
            failed = rows(failures, asked)
            found = rows(f"SELECT key, body FROM zlclient_answers WHERE key {among}", asked)  # noqa: S608 - ours
        outcomes = {key: Outcome(False, json.loads(body)) for key, body in failed}
        return outcomes | {key: Outcome(True, json.loads(body)) for key, body in found}

    def keep(self, outcomes: Iterable[tuple[str, Outcome]]) -> None:
        """Write outcomes, all or none; the first answer to a key stays."""
        answers: list[Parameters] = []
        failures: list[Parameters] = []
        for key, outcome in outcomes:
            body = json_text(outcome.body)
            (answers if outcome.ok else failures).append({"run": self._run, "key": key, "body": body})
        with self._database.transaction() as rows:
            if answers:
                rows("INSERT INTO zlclient_answers (key, body) VALUES (:key, :body) ON CONFLICT DO NOTHING", answers)
            if failures:
                rows("INSERT INTO zlclient_failures VALUES (:run, :key, :body) ON CONFLICT DO NOTHING", failures)
            if answers or failures:
                rows("DELETE FROM zlclient_submitted WHERE key = :key", [*answers, *failures])

    def end(self) -> None:
        """The run came to its end: the next one may try again what failed."""
        with self._database.transaction() as rows:
            rows("DELETE FROM zlclient_failures WHERE run = :run", {"run": self._run})

    def submitted(self, keys: Sequence[str]) -> set[str]:
        """Those of `keys` that are under way in a batch."""
        statement = f"SELECT key FROM zlclient_submitted WHERE key {self._database.among}"  # noqa: S608 - ours
        with self._database.transaction() as rows:
            return {key for (key,) in rows(statement, {"keys": self._database.keys(keys)})}

    def intend(self, provider: str, keys: Sequence[str], now: float) -> OpenBatch:
        """Note a batch that is about to be created, with what is in it."""
        batch = OpenBatch(uuid4().hex, provider, None, now, len(keys))
        with self._database.transaction() as rows:
            rows(
                "INSERT INTO zlclient_batches VALUES (:id, :provider, NULL, :created, :size)",
                {"id": batch.id, "provider": provider, "created": now, "size": batch.size},
            )
            entries = [{"key": key, "batch": batch.id} for key in keys]
            rows("INSERT INTO zlclient_submitted VALUES (:key, :batch) ON CONFLICT DO NOTHING", entries)
        return batch

    def created(self, batch: OpenBatch, remote: str) -> None:
        """The provider took the batch and calls it `remote`."""
        with self._database.transaction() as rows:
            rows("UPDATE zlclient_batches SET remote = :remote WHERE id = :id", {"remote": remote, "id": batch.id})

    def open_batches(self) -> list[OpenBatch]:
        """All batches that are not closed, the oldest first."""
        with self._database.transaction() as rows:
            found = rows("SELECT id, provider, remote, created, size FROM zlclient_batches ORDER BY created, id", {})
        return [OpenBatch(*row) for row in found]

    def close_batch(self, batch: OpenBatch) -> list[str]:
        """Forget a batch; returns the keys in it that got no outcome."""
        with self._database.transaction() as rows:
            left = rows("SELECT key FROM zlclient_submitted WHERE batch = :id", {"id": batch.id})
            rows("DELETE FROM zlclient_submitted WHERE batch = :id", {"id": batch.id})
            rows("DELETE FROM zlclient_batches WHERE id = :id", {"id": batch.id})
        return [key for (key,) in left]

    def close(self) -> None:
        """Give up connections."""
        self._database.close()


def open_ledger(url: str, run: str) -> Ledger:
    """The ledger at `url` for the run named `run`.

    Raises:
        ConfigError: the address is of no known kind, or its driver is not installed.
        LedgerUnavailable: it cannot be reached.
    """
    kind, _, rest = url.partition(":")
    if kind == "sqlite" and rest.startswith("///") and len(rest) > 3:
        return Ledger(_Sqlite(Path(rest[3:])), run)
    if kind.split("+")[0] in ("postgresql", "postgres"):
        return Ledger(_Postgres(url), run)
    raise ConfigError("must be sqlite:///PATH or postgresql://…", key="ledger")


class _Sqlite:
    # One parameter for any number of keys: SQLite bounds how many a statement may have.
    among = "IN (SELECT value FROM json_each(:keys))"

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, Lock()
        with self._failing():
            path.parent.mkdir(parents=True, exist_ok=True)
            # An answer that was paid for must outlive a power cut, too.
            self._connection = connect_wal(path, synchronous="FULL", busy_seconds=_BUSY_SECONDS)
        with self.transaction() as rows:
            for statement in _TABLES:
                rows(statement, {})

    @contextmanager
    def transaction(self) -> Generator[Any]:
        with self._lock, self._failing():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._rows
            except BaseException:
                self._connection.rollback()
                raise
            self._connection.commit()

    def _rows(self, statement: str, parameters: Parameters | Sequence[Parameters]) -> list[tuple[Any, ...]]:
        if isinstance(parameters, Mapping):
            return self._connection.execute(statement, parameters).fetchall()
        self._connection.executemany(statement, parameters)
        return []

    def keys(self, keys: Sequence[str]) -> str:
        return json.dumps(list(keys))

    @contextmanager
    def _failing(self) -> Generator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise LedgerUnavailable(f"the ledger {self._path.name}: {error}") from error

    def close(self) -> None:
        self._connection.close()


class _Postgres:
    among = "= ANY(:keys)"

    def __init__(self, url: str) -> None:
        try:
            import sqlalchemy
            import sqlalchemy.exc
        except ImportError:
            raise ConfigError("needs sqlalchemy and psycopg: install zlclient[postgresql]", key="ledger") from None
        self._sqlalchemy = sqlalchemy
        address = sqlalchemy.make_url(url)
        if "+" not in address.drivername:
            address = address.set(drivername="postgresql+psycopg")
        self._host = address.host or "its socket"
        try:
            self._engine = sqlalchemy.create_engine(
                address, pool_size=2, pool_pre_ping=True, connect_args={"connect_timeout": 5}
            )
        except ImportError:
            raise ConfigError("needs psycopg: install zlclient[postgresql]", key="ledger") from None
        with self.transaction() as rows:
            rows("SELECT pg_advisory_xact_lock(:key)", {"key": 0x7A6C6261})  # "zlba": tables are created in turn
            for statement in _TABLES:
                rows(statement, {})

    @contextmanager
    def transaction(self) -> Generator[Any]:
        try:
            with self._engine.begin() as connection:

                def rows(statement: str, parameters: Parameters | Sequence[Parameters]) -> list[tuple[Any, ...]]:
                    given = parameters if isinstance(parameters, Mapping) else list(parameters)
                    result = connection.execute(self._sqlalchemy.text(statement), given)
                    return [tuple(row) for row in result] if result.returns_rows else []

                yield rows
        except (self._sqlalchemy.exc.SQLAlchemyError, OSError) as error:
            # The driver's message may quote the address: only its kind is passed on.
            raise LedgerUnavailable(f"the ledger at {self._host}: {type(error).__name__}") from error

    def keys(self, keys: Sequence[str]) -> list[str]:
        return list(keys)

    def close(self) -> None:
        self._engine.dispose()
