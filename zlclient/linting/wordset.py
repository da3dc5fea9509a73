"""Sets of words written as text."""

from __future__ import annotations


def words_of(text: str) -> frozenset[str]:
    """The words of `text`, which blanks part."""
    return frozenset(text.split())
