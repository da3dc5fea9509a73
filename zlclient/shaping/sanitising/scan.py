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
    if text.isascii():
        return False
    if worth_vectorising(text):
        from . import blocks

        return blocks.has_rtl(text)
    return code_points.rtl().search(text) is not None


def has_loose_whitespace(text: str) -> bool:
    """Whether there might be blanks at a line end or two blank lines in a row, fenced code included."""
    if text.endswith((" ", "\t")) or text.startswith("\n\n"):
        return True
    if worth_vectorising(text):
        from . import blocks

        return blocks.has_loose_whitespace(text)
    return " \n" in text or "\t\n" in text or "\n\n\n" in text
