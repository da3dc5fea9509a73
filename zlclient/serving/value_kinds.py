"""Kinds of values that texts state (dates, amounts, names, …), from `data/kinds.toml`.

found("date", "Due on 3 May, or on 2026-01-02.")  # [Span("3 May", 7), Span("2026-01-02", 20)]
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from ..errors import ConfigError
from .field_values import spoken

_EVERY = re.compile(r"\b(?:every|each) (?:single )?((?:[a-z-]+ (?=number|address|date))?[a-z-]+)\b")
_FILE = "serving/data/kinds.toml"


class Span(NamedTuple):
    """A part of a text and where it begins."""

    text: str
    start: int

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of value; `find` is compiled when first needed."""

    name: str
    called: re.Pattern[str]
    bare: re.Pattern[str]
    listed: re.Pattern[str]
    find: tuple[str, ...]


def kind_of(field: str) -> str | None:
    """The kind of value that a field of this name holds: `due_date` a date; None where the name does not tell."""
    name = spoken(field).lower()
    return next((kind.name for kind in _kinds().values() if kind.called.search(name)), None)


def is_bare(field: str) -> bool:
    """Whether the name of a field says no more than its kind: `email`, 姓名, but not `issuer`."""
    kind = kind_of(field)
    return kind is not None and bool(_kinds()[kind].bare.fullmatch(spoken(field).lower()))


def places_of(kind: str, text: str) -> list[Span]:
    """Where `text` speaks of a value of `kind` by name: 手机 for a phone number."""
    return [Span(match[0], match.start()) for match in _kinds()[kind].called.finditer(text.lower())]


def kind_listed(request: str) -> str | None:
    """The kind whose every value `request` may ask for: `all email addresses`, 所有日期."""
    text = _EVERY.sub(lambda match: f"all {match[1]}{'es' if match[1].endswith('s') else 's'}", request.lower())
    return next((kind.name for kind in _kinds().values() if kind.listed.search(text)), None)


def found(kind: str, text: str) -> list[Span]:
    """All values of `kind` in `text`, in its order; where two overlap the earlier, then the longer one."""
    spans: list[Span] = []
    for pattern in _patterns(kind):
        group = "value" if "value" in pattern.groupindex else 0
        spans += [Span(match[group].rstrip(" ,"), match.start(group)) for match in pattern.finditer(text)]
    kept: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -len(span.text))):
        if span.text and (not kept or span.start >= kept[-1].end):
            kept.append(span)
    return kept


@cache
def _patterns(kind: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern) for pattern in _kinds()[kind].find)


@cache
def _kinds() -> Mapping[str, Kind]:
    text = (files(__package__ or "zlclient.serving") / "data" / "kinds.toml").read_text("utf-8")
    data: dict[str, Any] = tomllib.loads(text)
    words: dict[str, str] = data["words"]
    made: dict[str, Kind] = {}
    for entry in data["kind"]:
        try:
            find = tuple(_filled(pattern, words) for pattern in entry["find"])
            called, bare, listed = (re.compile(entry[key]) for key in ("called", "bare", "listed"))
            made[entry["name"]] = Kind(entry["name"], called, bare, listed, find)
        except (KeyError, re.error) as error:
            raise ConfigError(f"not a kind of value: {error}", key=str(entry.get("name")), file=_FILE) from None
    return made


def _filled(pattern: str, words: Mapping[str, str]) -> str:
    for name, words_of in words.items():
        pattern = pattern.replace("{" + name + "}", words_of if words_of[0] == "[" else f"(?:{words_of})")
    return pattern
