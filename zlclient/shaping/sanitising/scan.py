"""Questions about a whole text, asked of numpy where the text is long enough and of Python's own searches elsewhere."""

from __future__ import annotations

import sys

from . import code_points
from .code_points import Policy

# From about this many characters numpy wins, if it is loaded; from the second number on, what it saves on a text
# with many invisible characters pays for importing it.
VECTORISED_FROM = 20_000
IMPORT_FROM = 2_000_000


def worth_vectorising(text: str) -> bool:
    """Whether to use numpy for `text`; imports it only for a very long one."""
    if len(text) < VECTORISED_FROM:
        return False
    if sys.modules.get("numpy") is not None:
        return True
    if len(text) < IMPORT_FROM:
        return False
    try:
        import numpy  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError:
        return False
    return True


def suspects(text: str, policy: Policy) -> list[int]:
    """Offsets of the code points that `policy` has a rule for."""
    return [found.start() for found in policy.suspect.finditer(text)]


def has_suspects(text: str, policy: Policy) -> bool:
    """Whether there are any; twice as fast as searching for the first."""
    safe = policy.safe.match(text)
    return safe is None or safe.end() < len(text)


def has_rtl(text: str) -> bool:
    """Whether any character is written from right to left."""
    return not text.isascii() and code_points.rtl().search(text) is not None


def loose_whitespace(text: str) -> tuple[list[int], bool]:
    """Offsets of the line feeds that follow a blank, and whether there may be blank lines in a row."""
    at_start = text.startswith("\n\n")
    if worth_vectorising(text):
        from . import blocks

        ends, blank_lines = blocks.loose_whitespace(text)
        return ends, blank_lines or at_start
    ends = _line_feeds_after(text, " \n") + _line_feeds_after(text, "\t\n")
    return sorted(ends), at_start or "\n\n\n" in text


def _line_feeds_after(text: str, blank: str) -> list[int]:
    ends: list[int] = []
    at = text.find(blank)
    while at >= 0:
        ends.append(at + 1)
        at = text.find(blank, at + 2)
    return ends
