"""Where settings come from: the two files, with the line of every key, and the environment."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from .errors import ConfigError

PREFIX = "ZLCLIENT_"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value came from. `file` and `line` for files, `variable` for the environment."""

    source: str
    file: str | None = None
    line: int | None = None
    variable: str | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.file and self.line else self.file or self.source


@dataclass(frozen=True, slots=True)
class Source:
    """One source's values, with the origin of each dotted key."""

    name: str
    values: Mapping[str, Any]
    default_origin: Origin
    origins: Mapping[str, Origin] = field(default_factory=dict[str, Origin])

    def origin_of(self, key: str) -> Origin:
        """The origin of `key`, or of the nearest table around it."""
        while key:
            if key in self.origins:
                return self.origins[key]
            key = key.rpartition(".")[0]
        return self.default_origin


def environment_source(env: Mapping[str, str], accepted: Iterable[str]) -> Source:
    """`ZLCLIENT_*` variables: scalars by name, tables with a double underscore (`ZLCLIENT_ROUTES__AUTO`)."""
    known = set(accepted)
    values: dict[str, Any] = {}
    origins: dict[str, Origin] = {}
    for variable, value in env.items():
        if not variable.startswith(PREFIX) or not value:
            continue
        path = variable[len(PREFIX) :].lower().split("__")
        origin = Origin(variable, variable=variable)
        if len(path) == 1:
            if path[0] not in known:
                raise ConfigError(f"unknown variable; accepted are {_variables(known)}", key=variable)
            values[path[0]] = value
            origins[path[0]] = origin
            continue
        table = values
        for part in path[:-1]:
            table = cast("dict[str, Any]", table.setdefault(part, {}))
        table[path[-1]] = value
        origins[".".join(path)] = origin
    return Source("environment", values, Origin("environment"), origins)


def _variables(known: set[str]) -> str:
    return ", ".join(PREFIX + name.upper() for name in sorted(known))


def file_sources(start: Path) -> list[Source]:
    """zlclient.toml and pyproject.toml's [tool.zlclient], each the nearest at or above `start`; weakest first."""
    sources: list[Source] = []
    for name, table in (("zlclient.toml", ()), ("pyproject.toml", ("tool", "zlclient"))):
        path = _nearest(start, name, table)
        if path is not None:
            sources.append(read_file(path, table))
    return sources


def _nearest(start: Path, name: str, table: tuple[str, ...]) -> Path | None:
    start = start.resolve()
    for folder in (start, *start.parents):
        path = folder / name
        if not path.is_file():
            continue
        # A pyproject.toml that does not mention us is no reason to stop looking further up.
        if not table or "zlclient" in path.read_text("utf-8", errors="replace"):
            return path
    return None


def read_file(path: Path, table: tuple[str, ...] = ()) -> Source:
    """The settings in one TOML file.

    Raises:
        ConfigError: the file is not readable or not TOML; names the file, and the line where TOML tells it.
    """
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", file=str(path)) from None
    except UnicodeDecodeError:
        raise ConfigError("is not UTF-8", file=str(path)) from None
    try:
        data: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        line = int(found[1]) if found else text.count("\n") + 1  # "at end of document"
        raise ConfigError(f"is not TOML: {error}", file=str(path), line=line) from None
    for part in table:
        data = data.get(part, {})
    lines = key_lines(text, prefix=".".join(table))
    origins = {key: Origin("file", str(path), line) for key, line in lines.items()}
    return Source(path.name, data, Origin("file", str(path)), origins)


_HEADER = re.compile(r"\s*\[\[?\s*(?P<name>[^\[\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""\s*(?P<name>(?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")


def key_lines(text: str, prefix: str = "") -> dict[str, int]:
    """The 1-based line of every dotted key and table under `prefix`; tomllib keeps no positions."""
    lines: dict[str, int] = {}
    table = ""
    cut = f"{prefix}." if prefix else ""
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADER.match(line)
        if header:
            table = _dotted(header["name"])
            path = table
        else:
            key = _KEY.match(line)
            if not key:
                continue
            path = f"{table}.{_dotted(key['name'])}" if table else _dotted(key["name"])
        if path.startswith(cut):
            lines.setdefault(path[len(cut) :], number)
    return lines


def _dotted(name: str) -> str:
    parts = re.findall(r"""[\w-]+|"[^"]*"|'[^']*'""", name)
    return ".".join(part.strip("\"'") for part in parts)
