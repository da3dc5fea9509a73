"""From the settings' values to rollouts and their store: the one call that the client and the command line share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from .rollouts import Rollout, parse_rollouts
from .stores import Store, open_store
from .tables import Where


class Origin(Protocol):
    """Where a setting came from; `settings_sources.Origin` is one."""

    @property
    def file(self) -> str | None: ...  # noqa: D102
    @property
    def line(self) -> int | None: ...  # noqa: D102


def rollouts_of(tables: object, origins: Mapping[str, Origin]) -> dict[str, Rollout]:
    """The rollouts of the `rollouts` table.

    Raises:
        ConfigError: naming the key, its value, file and line.
    """
    return parse_rollouts(tables, "rollouts", _where(origins))


def configure(tables: object, store: str, origins: Mapping[str, Origin]) -> tuple[dict[str, Rollout], Store]:
    """The rollouts of the `rollouts` table and the store at the address `store`.

    A relative SQLite path is taken from the folder of the file that configures the rollouts, so that every process
    of a project finds the same one wherever it was started.

    Raises:
        ConfigError: naming the key, its value, file and line.
    """
    found = rollouts_of(tables, origins)
    files = [origin.file for key, origin in origins.items() if key.startswith(("rollouts.", "store")) and origin.file]
    return found, open_store(store, Path(files[0]).resolve().parent if files else None)


def _where(origins: Mapping[str, Origin]) -> Where:
    def where(key: str) -> tuple[str | None, int | None]:
        while key:
            origin = origins.get(key)
            if origin:
                return origin.file, origin.line
            key = key.rpartition(".")[0]
        return None, None

    return where
