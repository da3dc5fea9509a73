"""Strings for a JSON schema: formats, simple patterns, lengths."""

from __future__ import annotations

import importlib
import random
import re
import string
import uuid
from collections.abc import Iterable
from typing import Any

_FORMATS: dict[str, tuple[str, ...]] = {
    "date": ("2026-01-15", "2025-06-30", "2024-11-02"),
    "time": ("09:30:00Z", "14:05:00Z", "23:59:59Z"),
    "date-time": ("2026-01-15T09:30:00Z", "2025-06-30T14:05:00Z", "2024-11-02T23:59:59Z"),
    "duration": ("P1D", "PT30M", "P2W"),
    "email": ("alex.chen@example.com", "sam.lee@example.org"),
    "idn-email": ("alex.chen@example.com",),
    "hostname": ("example.com", "api.example.org"),
    "idn-hostname": ("example.com",),
    "ipv4": ("192.0.2.1", "198.51.100.7"),
    "ipv6": ("2001:db8::1", "2001:db8::2a"),
    "uri": ("https://example.com/a", "https://example.org/b?c=1"),
    "uri-reference": ("/a/b", "https://example.com/a"),
    "iri": ("https://example.com/a",),
    "iri-reference": ("/a",),
    "uri-template": ("https://example.com/{id}",),
    "json-pointer": ("/a/0",),
    "relative-json-pointer": ("0/a",),
    "regex": ("^[a-z]+$",),
}
_WORDS = ("alpha", "bravo", "delta", "gamma", "kappa", "lambda", "omega", "sigma")
_REPEAT_LIMIT = 3  # how often an unbounded repeat goes beyond its minimum


def formatted(name: str, rng: random.Random) -> str | None:
    """A string of a format, or None for a format that is not known (which by the standard constrains nothing)."""
    if name == "uuid":
        return str(uuid.UUID(int=rng.getrandbits(128), version=4))
    known = _FORMATS.get(name)
    return rng.choice(known) if known else None


def sized(text: str, low: int, high: float, rng: random.Random) -> str:
    """`text` cut or filled with words to between `low` and `high` characters."""
    while len(text) < low:
        text = f"{text} {rng.choice(_WORDS)}" if text else rng.choice(_WORDS)
    if len(text) > high:
        text = text[: int(high)]
        # A cut may leave a space at the end, which reads badly where letters would do.
        text = text[:-1] + "x" if text.endswith(" ") else text
    return text


def matching(pattern: str, rng: random.Random) -> str | None:
    """A string that `pattern` matches, or None when the pattern is beyond what is made here (look-arounds, …)."""
    try:
        # The standard library's own parser; hypothesis reads patterns the same way. There is no public one.
        parsed: Any = importlib.import_module("re._parser").parse(pattern)
        made = "".join(_Maker(rng).many(parsed))
        return made if re.search(pattern, made) else None
    except (re.error, NotImplementedError, RecursionError):
        return None


class _Maker:
    """Walks a parsed pattern, choosing as it goes."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._groups: dict[int, str] = {}

    def many(self, nodes: Iterable[tuple[Any, Any]]) -> Iterable[str]:
        for operation, argument in nodes:
            yield self._one(str(operation), argument)

    def _one(self, operation: str, argument: Any) -> str:
        match operation:
            case "LITERAL":
                return chr(argument)
            case "NOT_LITERAL":
                return "a" if argument != ord("a") else "b"
            case "ANY":
                return self._rng.choice(string.ascii_lowercase)
            case "AT":
                return ""
            case "IN":
                return self._in(argument)
            case "BRANCH":
                return "".join(self.many(self._rng.choice(argument[1])))
            case "SUBPATTERN":
                made = "".join(self.many(argument[-1]))
                if argument[0] is not None:
                    self._groups[argument[0]] = made
                return made
            case "GROUPREF":
                return self._groups.get(argument, "")
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                low, high, inner = argument
                times = self._rng.randint(low, min(int(high), low + _REPEAT_LIMIT))
                return "".join(text for _ in range(times) for text in self.many(inner))
            case "ATOMIC_GROUP":
                return "".join(self.many(argument))
            case _:
                raise NotImplementedError(operation)

    def _in(self, choices: list[tuple[Any, Any]]) -> str:
        negated = str(choices[0][0]) == "NEGATE"
        allowed = {char for operation, argument in choices[negated:] for char in _members(str(operation), argument)}
        if negated:
            allowed = {char for char in string.ascii_letters + string.digits + " -_." if char not in allowed}
        if not allowed:
            raise NotImplementedError("an empty class")
        return self._rng.choice(sorted(allowed))


def _members(operation: str, argument: Any) -> Iterable[str]:
    match operation:
        case "LITERAL":
            return (chr(argument),)
        case "RANGE":
            low, high = argument
            return (chr(code) for code in range(low, min(high, low + 200) + 1))
        case "CATEGORY":
            return _CATEGORIES.get(str(argument), "a")
        case _:
            raise NotImplementedError(operation)


_CATEGORIES = {
    "CATEGORY_DIGIT": string.digits,
    "CATEGORY_NOT_DIGIT": string.ascii_letters,
    "CATEGORY_SPACE": " ",
    "CATEGORY_NOT_SPACE": string.ascii_letters + string.digits,
    "CATEGORY_WORD": string.ascii_letters + string.digits,
    "CATEGORY_NOT_WORD": " -.",
}
