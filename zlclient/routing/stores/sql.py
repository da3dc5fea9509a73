"""The PostgreSQL store, through SQLAlchemy."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

from ..records import Record
from . import StoreUnavailable, need_driver
from .relational import Dialect, Parameters, RelationalStore, Transaction

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

# "zlcl" in ASCII: the key of the advisory lock that writers share.
_LOCK_KEY = 0x7A6C636C

# A cut network must be noticed within seconds, not after the kernel's quarter of an hour.
_CONNECT = {
    "connect_timeout": 2,
    "options": "-c statement_timeout=5000 -c lock_timeout=5000",
    "tcp_user_timeout": 3000,
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "keepalives_count": 2,
}


class SqlStore(RelationalStore):
    """A PostgreSQL database; its tables, named zlclient_…, are created at the first use."""

    def __init__(self, url: str) -> None:
        super().__init__(
            Dialect(
                serial="BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
                greatest="greatest",
                lock=f"SELECT pg_advisory_xact_lock({_LOCK_KEY})",
            )
        )
        try:
            import sqlalchemy
            import sqlalchemy.exc
        except ImportError as error:
            raise need_driver("sqlalchemy and psycopg", "postgresql") from error
        self._sqlalchemy = sqlalchemy
        address = sqlalchemy.make_url(url)
        # psycopg 3 is the driver we are tested with; a driver named in the address is taken as it is.
        self._url = address if "+" in address.drivername else address.set(drivername="postgresql+psycopg")
        self._guard = Lock()
        self._engine: tuple[int, Engine] | None = None

    @contextmanager
    def transaction(self, *, writes: bool) -> Generator[Transaction]:  # noqa: ARG002 - PostgreSQL needs no hint
        """See `RelationalStore`."""
        try:
            with self._own_engine().begin() as connection:
                yield _Transaction(connection, self._sqlalchemy.text)
        except (self._sqlalchemy.exc.SQLAlchemyError, OSError) as error:
            # The driver's message may quote the address: only its kind is passed on.
            kind = type(error).__name__
            raise StoreUnavailable(f"PostgreSQL store at {self._url.host or 'its socket'}: {kind}") from error

    def close(self) -> None:
        """Close the pool; the next call opens a new one."""
        with self._guard:
            if self._engine and self._engine[0] == os.getpid():
                self._engine[1].dispose()
            self._engine = None

    def insert(self, transaction: Transaction, records: Sequence[Record]) -> None:
        """One statement for the whole batch."""
        transaction.change(
            "INSERT INTO zlclient_records (kind, name, key, body) SELECT * FROM unnest(CAST(:kinds AS text[]), "
            "CAST(:names AS text[]), CAST(:keys AS text[]), CAST(:bodies AS text[])) ON CONFLICT DO NOTHING",
            {
                "kinds": [record.kind for record in records],
                "names": [record.name for record in records],
                "keys": [record.key for record in records],
                "bodies": [record.body for record in records],
            },
        )

    def _own_engine(self) -> Engine:
        found = self._engine
        if found and found[0] == os.getpid():
            return found[1]
        if found:
            # Forked: the parent's connections stay the parent's, and its lock may be held for ever.
            found[1].dispose(close=False)
            self._guard = Lock()
        with self._guard:
            engine = self._sqlalchemy.create_engine(
                self._url, pool_size=2, max_overflow=2, pool_pre_ping=True, connect_args=_CONNECT
            )
            with engine.begin() as connection:
                self.create(_Transaction(connection, self._sqlalchemy.text))
            self._engine = (os.getpid(), engine)
            return engine


class _Transaction:
    def __init__(self, connection: Connection, text: Any) -> None:
        self._connection, self._text = connection, text

    def change(self, statement: str, parameters: Parameters | Sequence[Parameters]) -> int:
        if not isinstance(parameters, Mapping):
            parameters = list(parameters)
        return self._connection.execute(self._text(statement), parameters).rowcount

    def rows(self, statement: str, parameters: Parameters) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self._connection.execute(self._text(statement), parameters)]
