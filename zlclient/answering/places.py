"""Numbered places of a Chinese law or contract that a text names: 第十二条, 第3章.

They are compared as such and by value: 第二条 is not there because 第二章 is, and 第3条 is 第三条.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ..checking.numerals import ARABIC, CHINESE, parse
from ..checking.text import fold

PLACE = re.compile(rf"第[ ]?(?P<number>{ARABIC}|{CHINESE})[ ]?(?P<kind>分编|[编章节条款项])")
_UNNUMBERED = ("款", "项")  # paragraphs and items carry no number in a law's text: which is meant cannot be checked


class Place(NamedTuple):
    """One place, `text[start:end]`; `key` is its value and kind, such as "12条"."""

    start: int
    end: int
    text: str
    key: str
    numbered: bool


def places(text: str) -> list[Place]:
    """The numbered places in `text`, in order."""
    found: list[Place] = []
    for match in PLACE.finditer(fold(text)):
        number = parse(match["number"])
        value = match["number"] if number is None else f"{number.value:f}"
        start, end = match.span()
        found.append(Place(start, end, text[start:end], value + match["kind"], match["kind"] not in _UNNUMBERED))
    return found
