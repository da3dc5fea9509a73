"""Names of fields that mean the same, from `data/field_names.toml`: `flight`, `flight number` and 航班.

names_like("flight")  # ("flight number", "航班", "航班号")
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from ..errors import ConfigError
from .field_values import spoken


def names_like(field: str) -> tuple[str, ...]:
    """The other names that `field` may have in a text, those of its groups in their order."""
    name = spoken(field).lower()
    return tuple(other for other in _like().get(name, ()) if spoken(other) != name)


@cache
def _like() -> Mapping[str, tuple[str, ...]]:
    text = (files("zlclient.serving") / "data" / "field_names.toml").read_text("utf-8")
    found: dict[str, tuple[str, ...]] = {}
    groups: list[list[str]] = tomllib.loads(text)["groups"]
    for group in groups:
        if len(set(group)) != len(group) or any(name != name.lower() for name in group):
            raise ConfigError(
                "a group holds different names in lower case", key=group[0], file="serving/data/field_names.toml"
            )
        for name in map(spoken, group):
            found[name] = (*found.get(name, ()), *(other for other in group if other not in found.get(name, ())))
    return found
