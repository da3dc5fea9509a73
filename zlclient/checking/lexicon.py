"""The word lists behind the checks: `units.toml`, `words.toml` and `names.toml`, loaded once and validated."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, fields
from decimal import Decimal, InvalidOperation
from functools import cache
from importlib.resources import files
from typing import Any, cast

from ..errors import ConfigError
from .text import alternatives


@dataclass(frozen=True, slots=True)
class Unit:
    """What stands beside a number.

    `dimension` is None for a unit that is recorded but not compared; `codes` are the currencies an amount may be in.
    """

    name: str
    dimension: str | None
    factor: Decimal
    codes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Units:
    """Units by the word that follows a number and by the sign that precedes it."""

    after: dict[str, Unit]
    before: dict[str, Unit]
    pattern: re.Pattern[str]
    sign_pattern: re.Pattern[str]

    def find(self, folded: str, at: int) -> tuple[Unit, int] | None:
        """The unit whose word begins at `at`, and where the word ends."""
        if not (match := self.pattern.match(folded, at)):
            return None
        word = match[0]
        return self.after.get(word) or self.after[word.lower()], match.end()


@dataclass(frozen=True, slots=True)
class Words:
    """Lists of `words.toml`, where they are explained."""

    idioms: tuple[str, ...]
    structure: tuple[str, ...]
    structure_before: tuple[str, ...]
    falls: tuple[str, ...]
    rises: tuple[str, ...]
    falls_after: tuple[str, ...]
    rises_after: tuple[str, ...]
    about: tuple[str, ...]
    over: tuple[str, ...]
    under: tuple[str, ...]
    fillers: tuple[str, ...]
    before_year: tuple[str, ...]
    abbreviations: tuple[str, ...]
    abbreviations_before_number: tuple[str, ...]
    abbreviations_or_end: tuple[str, ...]
    sentence_starters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Names:
    """Lists of `names.toml`, where they are explained."""

    organisations: tuple[str, ...]
    places: tuple[str, ...]
    titles: tuple[str, ...]
    surnames: tuple[str, ...]
    not_people: tuple[str, ...]
    leading: tuple[str, ...]
    generic: tuple[str, ...]
    ordinary: tuple[str, ...]
    common: tuple[str, ...]
    sections: tuple[str, ...]


def _read(name: str) -> tuple[str, dict[str, Any]]:
    text = files("zlclient.checking").joinpath(name).read_text(encoding="utf-8")
    return text, parse_toml(text, name)


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """The table in `text`; ConfigError with file and line where it is no TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        raise ConfigError(str(error), file=name, line=int(line[1]) if line else None) from None


def line_of(text: str, start: str) -> int | None:
    """Number of the first line that begins with `start`, from 1."""
    return next((number for number, line in enumerate(text.splitlines(), 1) if line.startswith(start)), None)


def word_lists(kind: type[Words] | type[Names], text: str, data: dict[str, Any], name: str) -> Words | Names:
    """The lists of one file; ConfigError for a key that is unknown, missing, or no list of words."""
    known = {field.name for field in fields(kind)}
    for key in data.keys() - known:
        raise ConfigError(
            f"unknown list; known are {', '.join(sorted(known))}", key=key, file=name, line=line_of(text, key)
        )
    for key in sorted(known):
        words: object = data.get(key)
        if (
            not isinstance(words, list)
            or not words
            or not all(isinstance(word, str) and word for word in cast("list[object]", words))
        ):
            raise ConfigError("needs a list of words", key=key, file=name, line=line_of(text, key))
    return kind(**{key: tuple(data[key]) for key in known})


def units_from(text: str, data: dict[str, Any], name: str) -> Units:
    """Units and currencies of one file; ConfigError names the entry that is wrong."""
    after: dict[str, Unit] = {}
    before: dict[str, Unit] = {}
    for entry in data.get("unit", []):
        unit, words, cased = _unit(entry, text, name)
        # A lone letter is itself only: 5g is a weight, 5G is not.
        after |= {word if cased or len(word) == 1 else word.lower(): unit for word in words}
    for entry in data.get("currency", []):
        codes = frozenset(entry["codes"])
        unit = Unit("/".join(entry["codes"]), "money", Decimal(1), codes)
        after |= {word.lower(): unit for word in entry["words"]}
        before |= dict.fromkeys(entry["signs"], unit)
    cased_words = tuple(word for word in after if word != word.lower() or (len(word) == 1 and word.isascii()))
    body = alternatives(tuple(word for word in after if word not in cased_words))
    # \b cannot stand between a digit and the letter of its unit, and 成 or 分 may begin another word (成为, 分之).
    body = (
        body.replace(r"\b", "")
        .replace("成", "成(?![为立功本员果长都交品年])")
        .replace("|分|", "|分(?![之布别析析成])|")
    )
    cased_body = alternatives(cased_words).replace(r"\b", "")
    return Units(
        after,
        before,
        re.compile(f"{cased_body}|(?i:{body})"),
        re.compile(alternatives(tuple(before)).replace(r"(?![A-Za-z0-9])", "") + r"[ ]?\Z"),
    )


def _unit(entry: dict[str, Any], text: str, name: str) -> tuple[Unit, list[str], bool]:
    title = str(entry.get("name"))
    line = line_of(text, f'name = "{title}"')
    if unknown := entry.keys() - {"name", "dimension", "factor", "words", "cased"}:
        raise ConfigError(f"unknown key {sorted(unknown)[0]}", key=title, file=name, line=line)
    try:
        factor = Decimal(entry["factor"])
        words = entry["words"]
    except (KeyError, InvalidOperation, TypeError):
        raise ConfigError(
            "needs name, factor (a decimal in quotes) and words", key=title, file=name, line=line
        ) from None
    return Unit(title, entry.get("dimension"), factor), words, bool(entry.get("cased"))


@cache
def units() -> Units:
    """The bundled units."""
    text, data = _read("units.toml")
    return units_from(text, data, "units.toml")


@cache
def words() -> Words:
    """The bundled words around numbers and dates."""
    text, data = _read("words.toml")
    return cast("Words", word_lists(Words, text, data, "words.toml"))


@cache
def names() -> Names:
    """The bundled lists for proper nouns."""
    text, data = _read("names.toml")
    return cast("Names", word_lists(Names, text, data, "names.toml"))
