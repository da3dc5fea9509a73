"""Surrogates in answers: servers cut text between UTF-16 units, so one character may come as halves in two deltas.

A half alone is no character: it cannot be written to a file, a terminal or the next request.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

_SURROGATE = re.compile("[\ud800-\udfff]")


def mended(text: str) -> str:
    """`text` with pairs of halves joined and each lone half as U+FFFD; the same object where there is none."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def mended_value(value: Any) -> Any:
    """Every string of a JSON value mended, keys included."""
    if isinstance(value, str):
        return mended(value)
    if isinstance(value, Mapping):
        return {mended(key): mended_value(item) for key, item in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list):
        return [mended_value(item) for item in cast("list[Any]", value)]
    return value


class Joiner:
    """Mends a text that comes in pieces: a first half at the end of one waits for its second in the next."""

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = ""

    def add(self, piece: str) -> str:
        """What can be told by now; "" while there is only a half."""
        if not self._half and piece.isascii():
            return piece
        text = self._half + piece
        self._half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        return mended(text[:-1] if self._half else text)

    def end(self) -> str:
        """The text ended: U+FFFD for a half that is left, else ""."""
        half, self._half = self._half, ""
        return mended(half)
