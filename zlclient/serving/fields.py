"""Which request fields each endpoint takes and what they hold, from `data/fields.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, cast

from ..errors import ConfigError


def _is_list_of(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(isinstance(item, kind) for item in cast("list[Any]", value))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "any": lambda _: True,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": _is_number,
    "object": lambda value: isinstance(value, dict),
    "objects": _is_list_of(dict),
    "string": lambda value: isinstance(value, str),
    "strings": _is_list_of(str),
}


def accepted_fields(endpoint: str) -> Mapping[str, str]:
    """The top-level fields of `endpoint` (a table of the file, such as "messages"), each with what it holds."""
    fields = _table().get(endpoint)
    if fields is None:
        raise ConfigError("no such endpoint", key=endpoint, file="serving/data/fields.toml")
    return fields


def misfit(body: Mapping[str, Any], *endpoints: str) -> tuple[str, str | None] | None:
    """The first field of `body` that `endpoints` do not take: its name, and what it should hold or None if unknown."""
    known = [accepted_fields(endpoint) for endpoint in endpoints]
    for name, value in body.items():
        kinds = next((fields[name] for fields in known if name in fields), None)
        if kinds is None:
            return name, None
        if value is not None and not any(_KINDS[kind](value) for kind in kinds.split(" or ")):
            return name, kinds
    return None


@cache
def _table() -> Mapping[str, Mapping[str, str]]:
    text = (files(__package__ or "zlclient.serving") / "data" / "fields.toml").read_text("utf-8")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(str(error), file="serving/data/fields.toml") from None
    for endpoint, fields in data.items():
        for name, kinds in fields.items():
            if not all(kind in _KINDS for kind in str(kinds).split(" or ")):
                raise ConfigError(
                    "no such kind", key=f"{endpoint}.{name}", value=kinds, file="serving/data/fields.toml"
                )
    return data
