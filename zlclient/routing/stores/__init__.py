"""Where rollouts keep their state and evidence: `open_store` takes an address and gives a `Store`.

    memory                          this process only, for tests
    sqlite, sqlite:///PATH          a file that many processes share (the default, in .zlclient/rollouts.db)
    postgresql://…                  through SQLAlchemy (extra `postgresql`)
    redis://…, rediss://…, unix://… through redis-py (extra `redis`)

A store knows nothing of what is in a record: it keeps each once, in the order it came. The module of a store, and its
driver, is imported when it is opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from ...errors import ConfigError, ZlclientError
from ..records import Record
from ..state import Event, State

DEFAULT_PATH = Path(".zlclient") / "rollouts.db"
PAGE = 10_000
"""How many records a store reads at a time."""


class StoreUnavailable(ZlclientError):
    """The store could not be reached or refused; the last known state stays in force."""


class Snapshot(NamedTuple):
    """What every process polls: a rollout's state, None before its start, and its shared numbers."""

    state: State | None
    marks: Mapping[str, float]


class Store(Protocol):
    """Shared state and evidence. Every method may raise `StoreUnavailable`; all are thread-safe and survive a fork."""

    def load(self, names: Sequence[str]) -> dict[str, Snapshot]:
        """The snapshot of each name, in one cheap round trip."""
        ...

    def swap(self, name: str, expected: int, state: State, event: Event) -> bool:
        """Put `state` in force if the epoch is still `expected` (0: no state yet); True for the one who did."""
        ...

    def note(self, event: Event) -> None:
        """Add to the history without changing the state."""
        ...

    def history(self, name: str) -> list[Event]:
        """All events, the oldest first."""
        ...

    def write(self, records: Sequence[Record]) -> None:
        """Keep those records whose (kind, name, key) is new."""
        ...

    def read(self, name: str, after: str = "") -> tuple[list[Record], str]:
        """Up to `PAGE` records of `name`, and of no name, after the cursor `after`; and the cursor after them.

        None is left once the list is empty.
        """
        ...

    def raise_mark(self, name: str, key: str, value: float) -> None:
        """Set a shared number to `value` unless it is higher already."""
        ...

    def add_mark(self, name: str, key: str, value: float) -> None:
        """Add to a shared number."""
        ...

    def claim(self, name: str, key: str, now: float, until: float) -> bool:
        """Take a turn: set the number to `until` if it is not above `now`; True for the one who did."""
        ...

    def close(self) -> None:
        """Give up connections; a later call opens them again."""
        ...


def open_store(url: str = "sqlite", base: Path | None = None) -> Store:
    """The store at `url`; relative paths are taken from `base`, the folder of the settings, or the current one.

    Raises:
        ConfigError: the address is of no known kind, or its driver is not installed.
    """
    kind, _, rest = url.partition(":")
    if url == "memory":
        from .memory import MemoryStore

        return MemoryStore()
    if kind == "sqlite" and (not rest or rest.startswith("///")):
        from .sqlite import SqliteStore

        return SqliteStore((base or Path.cwd()) / (rest[3:] or DEFAULT_PATH))
    if kind.split("+")[0] in {"postgresql", "postgres"}:
        from .sql import SqlStore

        return SqlStore(url)
    if kind in {"redis", "rediss", "unix"}:
        from .redis import RedisStore

        return RedisStore(url)
    raise ConfigError(
        "must be memory, sqlite, sqlite:///PATH, postgresql://… or redis://…", key="store", value=_without_password(url)
    )


def need_driver(module: str, extra: str) -> ConfigError:
    """The error for a driver that is not installed."""
    return ConfigError(f"needs {module}: install zlclient[{extra}]", key="store")


def _without_password(url: str) -> str:
    scheme, mark, rest = url.partition("://")
    return f"{scheme}{mark}…@{rest.rpartition('@')[2]}" if "@" in rest else url
