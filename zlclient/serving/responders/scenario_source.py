"""Written data with the place of every value: what scenario files are read from, and what errors point at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

from ...errors import ConfigError

_T = TypeVar("_T")
_D = TypeVar("_D")
Path_ = tuple[str | int, ...]
_MOST_NODES = 200_000  # aliases in aliases would otherwise grow without bound


@dataclass(frozen=True, slots=True)
class Source:
    """Where data came from: a file with the line of each value by path, or neither for data made in Python."""

    file: str = ""
    lines: Mapping[Path_, int] = field(default_factory=dict[Path_, int])


@dataclass(frozen=True, slots=True)
class Node:
    """A value at a path. Its methods read it as what is expected and raise ConfigError, with the place, otherwise."""

    value: Any
    source: Source = Source()
    path: Path_ = ()

    @property
    def line(self) -> int | None:
        """The line, 1-based, of the value or of the nearest one around it."""
        for size in range(len(self.path), -1, -1):
            line = self.source.lines.get(self.path[:size])
            if line is not None:
                return line
        return None

    @property
    def origin(self) -> str:
        """`file:line`, or "" for data made in Python."""
        return f"{self.source.file}:{self.line}" if self.source.file else ""

    def error(self, problem: str, *, shown: bool = True) -> ConfigError:
        """A ConfigError at this place."""
        key = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path).lstrip(".")
        value = self.value if shown and isinstance(self.value, str | int | float) else None
        return ConfigError(problem, key=key or None, value=value, file=self.source.file or None, line=self.line)

    def child(self, key: str | int, value: Any) -> Node:
        """The value under `key`."""
        return Node(value, self.source, (*self.path, key))

    def fields(self, *allowed: str) -> dict[str, Node]:
        """A mapping's values that are not None; unknown keys are errors."""
        found = self._mapping(f"a mapping with {_choices(allowed)} is expected")
        for key, value in found.items():
            if key not in allowed:
                raise self.child(str(key), value).error(f"no such key; accepted: {', '.join(allowed)}", shown=False)
        return {key: self.child(key, found[key]) for key in allowed if found.get(key) is not None}

    def entries(self) -> Iterator[tuple[str, Node]]:
        """A mapping's keys and values, whichever they are."""
        for key, value in self._mapping("a mapping is expected").items():
            yield str(key), self.child(str(key), value)

    def items(self, *, alone: bool = False) -> list[Node]:
        """A list's values; with `alone`, any other value stands for a list of itself."""
        value = self.value
        if isinstance(value, (list, tuple)):
            return [self.child(index, item) for index, item in enumerate(cast("Sequence[Any]", value))]
        if alone:
            return [self]
        raise self.error("a list is expected")

    def text(self) -> str:
        """A string."""
        if not isinstance(self.value, str):
            raise self.error("a string is expected; quote it" if self.source.file else "a string is expected")
        return self.value

    def one_of(self, *accepted: str) -> str:
        """One of the accepted strings."""
        if self.value not in accepted:
            raise self.error(f"accepted: {', '.join(accepted)}")
        return cast("str", self.value)

    def integer(self, minimum: int = 0) -> int:
        """A whole number of at least `minimum`."""
        if not isinstance(self.value, int) or isinstance(self.value, bool) or self.value < minimum:
            raise self.error(f"a whole number of at least {minimum} is expected")
        return self.value

    def seconds(self) -> float:
        """A number of at least 0."""
        if not isinstance(self.value, (int, float)) or isinstance(self.value, bool) or not self.value >= 0:
            raise self.error("a number of seconds, at least 0, is expected")
        return float(self.value)

    def data(self) -> dict[str, Any]:
        """A mapping as it is."""
        return {str(key): value for key, value in self._mapping("a mapping is expected").items()}

    def _mapping(self, problem: str) -> Mapping[Any, Any]:
        value = self.value
        if not isinstance(value, Mapping):
            raise self.error(problem)
        return cast("Mapping[Any, Any]", value)


def read(fields: Mapping[str, Node], key: str, how: Callable[[Node], _T], default: _D) -> _T | _D:
    """`how` applied to the field, or `default` where it is not given."""
    return how(fields[key]) if key in fields else default


def read_yaml(path: Path) -> Node:
    """The one YAML document of a file. Raises ConfigError with file and line, also for a key given twice."""
    import yaml

    name = str(path)
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"cannot be read: {error}", file=name) from None
    loader: Any = yaml.SafeLoader(text)
    try:
        root = loader.get_single_node()
        lines: dict[Path_, int] = {}
        if root is not None:
            _walk(root, (), lines, name)
        data: Any = None if root is None else loader.construct_document(root)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise ConfigError(error.problem or "no valid YAML", file=name, line=line) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"no valid YAML: {type(error).__name__}", file=name) from None
    finally:
        loader.dispose()
    return Node(data, Source(name, lines))


def _walk(node: Any, path: Path_, lines: dict[Path_, int], file: str) -> None:
    """Note the line of every value under `node`."""
    line = node.start_mark.line + 1
    if len(lines) > _MOST_NODES:
        raise ConfigError(f"more than {_MOST_NODES} values", file=file, line=line)
    lines[path] = line
    if isinstance(node.value, str):
        return
    if node.id == "sequence":
        for index, item in enumerate(node.value):
            _walk(item, (*path, index), lines, file)
        return
    for key, value in node.value:
        at = (*path, str(key.value))
        if at in lines and key.value != "<<":
            raise ConfigError("the key is given twice", key=str(key.value), file=file, line=key.start_mark.line + 1)
        _walk(value, at, lines, file)
        lines[at] = key.start_mark.line + 1


def _choices(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + f" or {names[-1]}" if len(names) > 1 else "".join(names)
