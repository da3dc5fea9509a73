"""Which domain a request is of, from `domains.toml`: by its tag, else by two of a domain's anchor phrases."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ..errors import ConfigError

ENOUGH = 2  # different anchor phrases that make a domain


@dataclass(frozen=True, slots=True)
class Marks:
    """What marks a domain: tags as they stand in a text, and anchor phrases in lower case."""

    tags: tuple[str, ...]
    anchors: tuple[str, ...]


@cache
def domain_marks() -> Mapping[str, Marks]:
    """The domains and their marks; raises ConfigError for a malformed table."""
    file = files(__package__ or "zlclient.engine") / "domains.toml"
    found: dict[str, Marks] = {}
    tables: dict[str, dict[str, list[str]]] = tomllib.loads(file.read_text("utf-8"))
    for name, table in tables.items():
        if set(table) != {"tags", "anchors"}:
            raise ConfigError("needs `tags` and `anchors`", key=name, file="domains.toml")
        found[name] = Marks(tuple(table["tags"]), tuple(anchor.lower() for anchor in table["anchors"]))
    return found


def domain_of(text: str) -> tuple[str, str]:
    """The domain of `text` and the tag in it; ("general", "") where nothing marks one."""
    marks = domain_marks()
    tagged = [(at, name, tag) for name, mark in marks.items() for tag in mark.tags if (at := text.find(tag)) >= 0]
    if tagged:
        _, name, tag = min(tagged)
        return name, tag
    lowered = text.lower()
    counts = {name: sum(anchor in lowered for anchor in mark.anchors) for name, mark in marks.items()}
    best = max(counts, key=lambda name: counts[name])
    return (best, "") if counts[best] >= ENOUGH else ("general", "")
