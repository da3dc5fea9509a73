"""Word lists by language: data in `lexicons/*.toml`, compiled once, checked with file and line.

Each entry is a regular expression. English entries match whole words in any case; Chinese ones match anywhere.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from typing import Any, cast

from zlclient.errors import ConfigError

from .lexicon_gate import Gate, Keys, Needs, first_four, holds_pieces, holds_runs, split_words

LANGUAGES = ("en", "zh")
_UPPER = re.compile(r"\\.|[A-Z]")


class Entry:
    """One pattern of a list, and what a text must hold for it to match: single pieces, and runs of characters."""

    def __init__(self, item: str, language: str) -> None:
        # Matched against lower-case text: IGNORECASE would try every alternative at every character.
        low = _UPPER.sub(_lower, item)
        gate = Gate(low)
        # A pattern that begins with known letters is found much faster without; `find` looks at what stands before.
        start = "" if gate.begins_with_letters() else r"(?<!\w)"
        self._source = rf"{start}(?:{low})(?!\w)" if language == "en" else low
        self.pieces: Needs = gate.pieces(language)
        self.runs: Needs = gate.runs(language)

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The pattern, compiled when a text may match it: most never are in one run."""
        return re.compile(self._source)


class Lexicon:
    """The lists of one language by name."""

    def __init__(self, language: str, lists: Mapping[str, tuple[Entry, ...]]) -> None:
        self.language = language
        self._lists = lists
        self._keys = {name: _one_of(entries) for name, entries in lists.items()}

    def find(self, name: str, low: str) -> list[re.Match[str]]:
        """Matches of a list in lower-case text, in order; of two that overlap the first, or the longer one."""
        found = [match for entry in self.possible(name, low) for match in entry.pattern.finditer(low)]
        if self.language == "en":
            found = [match for match in found if not match.start() or not _is_word(low[match.start() - 1])]
        found.sort(key=lambda match: (match.start(), -match.end()))
        kept: list[re.Match[str]] = []
        for match in found:
            if not kept or match.start() >= kept[-1].end():
                kept.append(match)
        return kept

    def possible(self, name: str, low: str) -> Sequence[Entry]:
        """The entries of a list that can match in lower-case text; no other can."""
        return _possible(self, name, low)

    def needs_any_of(self, name: str) -> Keys:
        """The pieces of which a text must have one for any entry of a list to match; empty where nothing is sure."""
        return self._keys.get(name, frozenset())

    @property
    def lists(self) -> Mapping[str, tuple[Entry, ...]]:
        """The lists by name."""
        return self._lists


def _one_of(entries: Sequence[Entry]) -> Keys:
    if not all(entry.pieces for entry in entries):
        return frozenset()
    # Of all that an entry needs the rarest, as far as length tells.
    return frozenset[str]().union(
        *(min(entry.pieces, key=lambda keys: (len(keys), -min(map(len, keys)))) for entry in entries)
    )


@lru_cache(maxsize=256)
def _possible(lexicon: Lexicon, name: str, low: str) -> Sequence[Entry]:
    # Rules ask whether there are any, and then for the matches.
    found = _pieces(low, lexicon.language)
    keys = lexicon.needs_any_of(name)
    if keys and keys.isdisjoint(found):
        return ()
    entries = [entry for entry in lexicon.lists.get(name, ()) if holds_pieces(entry.pieces, found)]
    return [entry for entry in entries if holds_runs(entry.runs, low)]


def parse_lexicon(text: str, language: str, file: str, *, check: bool = True) -> Lexicon:
    """A lexicon from TOML: `name = ["pattern", …]`; `check` compiles every pattern.

    Raises:
        ConfigError: not TOML, no list of strings, or an invalid pattern; names file and line.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        raise ConfigError(str(error), file=file, line=int(found[1]) if found else text.count("\n") + 1) from None
    lists = {name: tuple(_entries(name, items, language, text, file, check)) for name, items in data.items()}
    return Lexicon(language, lists)


def _entries(name: str, value: object, language: str, text: str, file: str, check: bool) -> Iterator[Entry]:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    if not items or not all(isinstance(item, str) for item in items):
        raise ConfigError("must be a list of patterns", key=name, file=file, line=_line(text, f"{name} ="))
    for item in cast("list[str]", items):
        if check:
            try:
                re.compile(item)
            except re.error as error:
                raise ConfigError(f"invalid pattern: {error}", key=name, file=file, line=_line(text, item)) from None
        yield Entry(item, language)


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def _lower(found: re.Match[str]) -> str:
    return found[0] if found[0][0] == "\\" else found[0].lower()


@lru_cache(maxsize=64)
def lowered(text: str) -> str:
    """`text` in lower case at equal offsets."""
    low = text.lower()
    return low if len(low) == len(text) else "".join(char.lower() if len(char.lower()) == 1 else char for char in text)


def _line(text: str, needle: str) -> int:
    return text[: max(0, text.find(needle))].count("\n") + 1


@cache
def lexicon(language: str) -> Lexicon:
    """The bundled lexicon of "en" or "zh"."""
    folder = files(__package__ or "zlclient.linting") / "lexicons"
    name = f"{language}.toml"
    # The tests check the bundled lists.
    return parse_lexicon((folder / name).read_text("utf-8"), language, f"linting/lexicons/{name}", check=False)


latin_words = lru_cache(maxsize=64)(split_words)


@lru_cache(maxsize=64)
def _pieces(low: str, language: str) -> frozenset[str]:
    """The cheap view of a lower-case text: the first four letters of its words, or its characters."""
    return first_four(latin_words(low)) if language == "en" else frozenset(low)


def words(low: str) -> frozenset[str]:
    """The first four letters of every word of a lower-case text."""
    return _pieces(low, "en")


def matches(name: str, text: str, languages: frozenset[str]) -> Iterator[re.Match[str]]:
    """Matches of list `name` in `text`, for each of its languages; they hold the text in lower case."""
    low = lowered(text)
    for language in LANGUAGES:
        if language in languages:
            yield from lexicon(language).find(name, low)


def may_hold(name: str, low: str, languages: frozenset[str]) -> bool:
    """Whether list `name` of any of the languages can match in lower-case text; False is certain."""
    return any(lexicon(language).possible(name, low) for language in languages)


def holds(name: str, text: str, languages: frozenset[str] = frozenset(LANGUAGES)) -> bool:
    """Whether any entry of list `name` occurs in `text`."""
    return next(matches(name, text, languages), None) is not None
