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


def config_error(
    problem: str, key: str, origins: Mapping[str, Origin], value: object = None, *, whole: bool = False
) -> ConfigError:
    """A ConfigError for `key` with the file and line, or the variable, that set it or the nearest table around it.

    `whole`: `problem` already begins with the key and the value.
    """
    origin, around = Origin("argument"), key
    while around:
        if around in origins:
            origin = origins[around]
            break
        around = around.rpartition(".")[0]
    if not whole:
        return ConfigError(problem, key=origin.variable or key, value=value, file=origin.file, line=origin.line)
    error = ConfigError(problem, file=origin.file, line=origin.line)
    error.key, error.value = key, value
    return error


def environment_source(env: Mapping[str, str], accepted: Iterable[str], tables: Iterable[str]) -> Source:
    """`ZLCLIENT_*` variables: scalars by name, tables with a double underscore (`ZLCLIENT_ROUTES__AUTO`).

    Raises:
        ConfigError: a variable is unknown, or one gives a value to what another makes a table.
    """
    known, known_tables = set(accepted), set(tables)
    values: dict[str, Any] = {}
    origins: dict[str, Origin] = {}
    for variable, value in env.items():
        if not variable.startswith(PREFIX) or not value:
            continue
        path = variable[len(PREFIX) :].lower().split("__")
        origin = Origin(variable, variable=variable)
        if path[0] not in (known if len(path) == 1 else known_tables):
            raise ConfigError(f"unknown variable; accepted are {_variables(known, known_tables)}", key=variable)
        table = values
        for depth, part in enumerate(path[:-1], 1):
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                raise _contradiction(variable, origins[".".join(path[:depth])])
            table = cast("dict[str, Any]", table)
        if path[-1] in table:
            inside = ".".join(path)
            other = next(o for key, o in origins.items() if key == inside or key.startswith(f"{inside}."))
            raise _contradiction(variable, other)
        table[path[-1]] = value
        origins[".".join(path)] = origin
    return Source("environment", values, Origin("environment"), origins)


def _contradiction(variable: str, other: Origin) -> ConfigError:
    return ConfigError(f"contradicts {other.variable}; set one of them", key=variable)


def _variables(known: set[str], tables: set[str]) -> str:
    names = [PREFIX + name.upper() for name in sorted(known)]
    return ", ".join([*names, *(f"{PREFIX}{name.upper()}__…" for name in sorted(tables))])


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
        if not table or "zlclient" in _text(path, errors="replace"):
            return path
    return None


def _text(path: Path, errors: str = "strict") -> str:
    try:
        return path.read_text("utf-8", errors)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", file=str(path)) from None
    except UnicodeDecodeError:
        raise ConfigError("is not UTF-8", file=str(path)) from None


def read_file(path: Path, table: tuple[str, ...] = ()) -> Source:
    """The settings in one TOML file.

    Raises:
        ConfigError: the file is not readable or not TOML, or `table` is something else there; names the file, and
            the line where it is known.
    """
    text = _text(path)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        line = int(found[1]) if found else text.count("\n") + 1  # "at end of document"
        raise ConfigError(f"is not TOML: {error}", file=str(path), line=line) from None
    for depth, part in enumerate(table, 1):
        inner: Any = data.get(part, {})
        if not isinstance(inner, dict):
            name = ".".join(table[:depth])
            raise ConfigError("must be a table", key=name, file=str(path), line=key_lines(text).get(name))
        data = cast("dict[str, Any]", inner)
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
