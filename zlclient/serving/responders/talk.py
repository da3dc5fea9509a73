"""Small talk, and plain words about what cannot be done, from `serving/data/talk.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from ...errors import ConfigError
from .reading import Language

_FILE = "serving/data/talk.toml"


@dataclass(frozen=True, slots=True)
class _Entry:
    asked: re.Pattern[str]
    said: Mapping[str, str]
    texts: bool


@dataclass(frozen=True, slots=True)
class _Talk:
    talk: tuple[_Entry, ...]
    cannot: tuple[_Entry, ...]
    say: Mapping[str, str]


def small_talk(request: str, language: Language) -> str | None:
    """An answer to a greeting, thanks, or a question about the responder itself; None where it is none of these."""
    entry = _first(_talk().talk, request)
    return entry and entry.said[language]


def refusal(request: str, language: Language, *, question: bool = False) -> str | None:
    """Plain words for a request to translate, write, calculate or the like; None where it asks for none of these.

    A `question` about a text may speak of such things; only what can be asked of a text itself is looked for in it.
    """
    entries = _talk().cannot
    entry = _first(tuple(entry for entry in entries if entry.texts) if question else entries, request)
    return entry and _talk().say[f"cannot_{language}"].format(what=entry.said[language])


def without_text(language: Language) -> str:
    """What to say to a question that comes without a text."""
    return _talk().say[f"no_text_{language}"]


def _first(entries: tuple[_Entry, ...], request: str) -> _Entry | None:
    text = re.sub(r"\s+", " ", request.strip().lower())
    return next((entry for entry in entries if entry.asked.search(text)), None)


@cache
def _talk() -> _Talk:
    text = (files("zlclient.serving") / "data" / "talk.toml").read_text("utf-8")
    data: dict[str, Any] = tomllib.loads(text)
    return _Talk(_entries(data["talk"]), _entries(data["cannot"]), data["say"])


def _entries(given: list[dict[str, Any]]) -> tuple[_Entry, ...]:
    try:
        return tuple(
            _Entry(re.compile(entry["asked"]), {"zh": entry["zh"], "en": entry["en"]}, entry.get("texts", False))
            for entry in given
        )
    except (KeyError, re.error) as error:
        raise ConfigError(f"not an entry of talk: {error}", file=_FILE) from None
