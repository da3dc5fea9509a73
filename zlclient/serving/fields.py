"""Which request fields each wire accepts, from `data/fields.toml`; unknown ones are rejected as the real APIs do it."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

from ..errors import ConfigError


@cache
def accepted_fields(endpoint: str) -> frozenset[str]:
    """The top-level fields that `endpoint` (a key of the table, such as "messages") accepts."""
    fields = _table().get(endpoint)
    if fields is None:
        raise ConfigError("no such endpoint", key=endpoint, file="serving/data/fields.toml")
    return fields


@cache
def _table() -> dict[str, frozenset[str]]:
    text = (files(__package__ or "zlclient.serving") / "data" / "fields.toml").read_text("utf-8")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(str(error), file="serving/data/fields.toml") from None
    for name, fields in data.items():
        if not isinstance(fields, list):
            raise ConfigError("must be a list of field names", key=name, file="serving/data/fields.toml")
    return {name: frozenset(fields) for name, fields in data.items()}
