"""For people: each finding with its line and a mark below the place."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from ..diagnostic import Diagnostic
from .concise import line

_WIDTH = 96


def render(diagnostics: Sequence[Diagnostic]) -> str:
    """All findings with the line each stands on."""
    return "".join(_one(item) for item in diagnostics)


def _one(item: Diagnostic) -> str:
    head = f"{line(item)} ({item.slug})\n"
    if not item.line_text.strip():
        return head
    start = max(0, item.column - 1 - _WIDTH // 2)
    shown = item.line_text[start : start + _WIDTH]
    length = item.end_column - item.column if item.end_line == item.line else len(item.line_text) - item.column + 1
    before, marked = shown[: item.column - 1 - start], shown[item.column - 1 - start :][: max(1, length)]
    marks = " " * _columns(before) + "^" * max(1, _columns(marked))
    number = str(item.line)
    lead = "…" if start else ""
    visible = "".join(char if char.isprintable() else "\ufffd" for char in shown)
    return f"{head}  {number} | {lead}{visible}\n  {' ' * len(number)} | {' ' * len(lead)}{marks}\n"


def _columns(text: str) -> int:
    """Terminal columns: ideographs take two."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)
