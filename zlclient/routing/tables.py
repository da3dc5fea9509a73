"""Reading a configuration table strictly: every wrong, missing or unknown key is a `ConfigError` that says so."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from math import isfinite
from typing import NoReturn, TypeGuard, cast

from ..errors import ConfigError

Where = Callable[[str], tuple[str | None, int | None]]
"""From a dotted key to the file and line that set it, as far as known."""

_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d|w)\s*")
_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_MONEY = re.compile(r"\s*\$?\s*(\d+(?:\.\d+)?)\s*(?:USD)?\s*")


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether `value` is an int or a finite float; True and False are not."""
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def as_list(value: object) -> list[object] | None:
    """The items of a list or tuple; None for anything else."""
    return list(cast("list[object]", value)) if isinstance(value, list | tuple) else None


class Table:
    """One table of a configuration; `path` is its dotted key. Read the keys, then call `finish`."""

    def __init__(self, values: object, path: str, where: Where | None = None) -> None:
        self.path, self.where = path, where
        self._values: Mapping[str, object] = {}
        if not isinstance(values, Mapping):
            self.refuse(None, values, "must be a table")
        self._values = cast("Mapping[str, object]", values)
        self._read: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def refuse(self, key: str | None, value: object, problem: str) -> NoReturn:
        """Raise the `ConfigError` for `key` of this table."""
        dotted = f"{self.path}.{key}" if key else self.path
        file, line = self.where(dotted) if self.where else (None, None)
        raise ConfigError(problem, key=dotted, value=value, file=file, line=line)

    def raw(self, key: str, default: object = None) -> object:
        """The value as it is; None counts as absent."""
        self._read.add(key)
        found = self._values.get(key)
        return default if found is None else found

    def text(self, key: str, default: str | None = None) -> str:
        """A non-empty string, required unless a default is given."""
        value = self.raw(key, default)
        if value is None:
            self.refuse(key, None, "is required")
        if not isinstance(value, str) or not value:
            self.refuse(key, value, "must be a non-empty string")
        return value

    def choice(self, key: str, accepted: Collection[str], default: str) -> str:
        """One of `accepted`."""
        value = self.text(key, default)
        if value not in accepted:
            self.refuse(key, value, f"must be one of {', '.join(accepted)}")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self.raw(key, default)
        if not isinstance(value, bool):
            self.refuse(key, value, "must be true or false")
        return value

    def number(self, key: str, default: float, low: float, high: float) -> float:
        """A number from `low` to `high`."""
        value = self.raw(key, default)
        if not is_number(value) or not low <= value <= high:
            self.refuse(key, value, f"must be a number from {low:g} to {high:g}")
        return float(value)

    def integer(self, key: str, default: int, low: int, high: int) -> int:
        """A whole number from `low` to `high`."""
        value = self.raw(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            self.refuse(key, value, f"must be a whole number from {low} to {high}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of different non-empty strings; empty when absent."""
        value = self.raw(key, [])
        texts = [item for item in as_list(value) or [] if isinstance(item, str) and item]
        if texts != as_list(value) or len(set(texts)) != len(texts):
            self.refuse(key, value, "must be a list of different non-empty strings")
        return tuple(texts)

    def numbers(self, key: str, low: float, high: float) -> tuple[float, ...] | None:
        """A list of numbers from `low` to `high`; None when absent."""
        value = self.raw(key)
        if value is None:
            return None
        items = as_list(value) or []
        numbers = [float(item) for item in items if is_number(item) and low <= item <= high]
        if not items or len(numbers) != len(items):
            self.refuse(key, value, f"must be a list of numbers from {low:g} to {high:g}")
        return tuple(numbers)

    def duration(self, key: str, default: float) -> float:
        """Seconds: a number of seconds, or a text such as "90 s", "15 min", "24 h", "3 d"."""
        value = self.raw(key, default)
        match = _DURATION.fullmatch(value) if isinstance(value, str) else None
        if match:
            return float(match[1]) * _SECONDS[match[2]]
        if not is_number(value) or value < 0:
            self.refuse(key, value, 'must be a duration such as "90 s", "15 min", "24 h" or "3 d"')
        return float(value)

    def money(self, key: str, default: float) -> float:
        """US dollars: a number, or a text such as "5 USD"."""
        value = self.raw(key, default)
        match = _MONEY.fullmatch(value) if isinstance(value, str) else None
        if match:
            return float(match[1])
        if not is_number(value) or value < 0:
            self.refuse(key, value, 'must be an amount such as "5 USD"')
        return float(value)

    def table(self, key: str) -> Table:
        """The table under `key`; an empty one when absent."""
        return Table(self.raw(key, {}), f"{self.path}.{key}", self.where)

    def items(self) -> list[tuple[str, object]]:
        """Every key and value, all taken as read."""
        self._read.update(self._values)
        return list(self._values.items())

    def finish(self) -> None:
        """Refuse the keys nobody read."""
        for key, value in self._values.items():
            if key not in self._read:
                near = get_close_matches(key, self._read, 1)
                hint = f"; did you mean {near[0]}?" if near else ""
                self.refuse(key, value, f"unknown key{hint} Accepted: {', '.join(sorted(self._read))}")
