"""Word lists by language: data in `lexicons/*.toml`, compiled once, checked with file and line.

Each entry is a regular expression. English entries match whole words in any case; Chinese ones match anywhere.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, cast

from zlclient.errors import ConfigError

LANGUAGES = ("en", "zh")


class Lexicon:
    """The lists of one language: name -> one pattern. `find` also takes a text of that language only."""

    def __init__(self, language: str, patterns: Mapping[str, re.Pattern[str]]) -> None:
        self.language = language
        self._patterns = patterns

    def pattern(self, name: str) -> re.Pattern[str] | None:
        """The pattern of a list, None where this language has no such list."""
        return self._patterns.get(name)

    @property
    def names(self) -> frozenset[str]:
        """The names of the lists."""
        return frozenset(self._patterns)


def parse_lexicon(text: str, language: str, file: str) -> Lexicon:
    """A lexicon from TOML: `name = ["pattern", …]`.

    Raises:
        ConfigError: not TOML, no list of strings, or an invalid pattern; names file and line.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        raise ConfigError(str(error), file=file, line=int(found[1]) if found else None) from None
    return Lexicon(language, {name: _compile(name, value, language, text, file) for name, value in data.items()})


def _compile(name: str, value: object, language: str, text: str, file: str) -> re.Pattern[str]:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    if not items or not all(isinstance(item, str) for item in items):
        raise ConfigError("must be a list of patterns", key=name, file=file, line=_line(text, f"{name} ="))
    for item in cast("list[str]", items):
        try:
            re.compile(item)
        except re.error as error:
            raise ConfigError(f"invalid pattern: {error}", key=name, file=file, line=_line(text, item)) from None
    joined = "|".join(f"(?:{item})" for item in items)
    return re.compile(rf"\b(?:{joined})(?!\w)" if language == "en" else f"(?:{joined})", re.IGNORECASE)


def _line(text: str, needle: str) -> int:
    return text[: max(0, text.find(needle))].count("\n") + 1


@cache
def lexicon(language: str) -> Lexicon:
    """The bundled lexicon of "en" or "zh"."""
    folder = files(__package__ or "zlclient.linting") / "lexicons"
    name = f"{language}.toml"
    return parse_lexicon((folder / name).read_text("utf-8"), language, f"linting/lexicons/{name}")


def matches(name: str, text: str, languages: frozenset[str]) -> Iterator[re.Match[str]]:
    """Matches of list `name` in `text`, for each of its languages."""
    for language in LANGUAGES:
        pattern = lexicon(language).pattern(name) if language in languages else None
        if pattern:
            yield from pattern.finditer(text)


def holds(name: str, text: str, languages: frozenset[str] = frozenset(LANGUAGES)) -> bool:
    """Whether any entry of list `name` occurs in `text`."""
    return next(matches(name, text, languages), None) is not None
