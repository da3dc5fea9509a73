"""Where to cut a text that must be cut: after a paragraph, a line, a sentence, a clause, a word, or a character."""

from __future__ import annotations

import re

from .graphemes import boundary_after, boundary_before, is_boundary
from .token_index import TokenIndex

_SENTENCE_ENDS = ("。", "！", "？", "……", ". ", "? ", "! ", ".\n", "．", "｡")
_CLAUSE_ENDS = ("；", "; ", "，", ", ", "：", ": ", "、")
_CLOSERS = "。！？…”’」』）》】〉)]\"'"
_ROW = re.compile(r"[ \t]{0,3}(?:\||```|~~~)")
_SPACE = " \t\n\r\u3000"


def best_cut(text: str, start: int, limit: int) -> int:
    """Return where in (`start`, `limit`] to cut `text`, whose piece from `start` to `limit` just fits.

    The latest paragraph end in the second half is best, then a line's, then a sentence's; then the same in the first
    half; then a clause or a word; then any character. A table row or a fence line is cut only when it alone is longer
    than the piece, and a grapheme cluster only when it alone is.
    """
    half = start + (limit - start) // 2
    cut = (
        _blank_line(text, half, limit)
        or _line(text, half, limit)
        or _after(_SENTENCE_ENDS, text, half, limit)
        or _line(text, start, limit)
        or _after(_SENTENCE_ENDS, text, start, limit)
        or _after(_CLAUSE_ENDS, text, half, limit)
        or _word(text, half, limit)
        or limit
    )
    if text[cut - 1] != "\n":
        line = text.rfind("\n", start, cut) + 1
        if line > start and _ROW.match(text, line):
            return line
    return _whole_characters(text, start, cut, limit)


def overlap_start(text: str, low: int, end: int, costs: TokenIndex, units: int) -> int:
    """Return where in [`low`, `end`] an overlap of at most `units` before `end` begins: a line, a sentence, a word."""
    if units <= 0:
        return end
    first = costs.reach(low, max(0, costs.cost(low, end) - units))
    while costs.cost(first, end) > units:
        first += 1
    if first <= low:
        return low
    for marks in (("\n",), _SENTENCE_ENDS, _CLAUSE_ENDS, (" ",)):
        starts = [at + len(mark) for mark in marks if (at := text.find(mark, first, end - 1)) >= 0]
        if starts:
            return boundary_after(text, _past_space(text, min(starts), end), end, low)
    return boundary_after(text, first, end, low)


def _blank_line(text: str, low: int, high: int) -> int:
    return max(_found_after(text, "\n\n", low, high), _found_after(text, "\n\r\n", low, high))


def _line(text: str, low: int, high: int) -> int:
    return _found_after(text, "\n", low, high)


def _found_after(text: str, mark: str, low: int, high: int) -> int:
    found = text.rfind(mark, low, high)
    return found + len(mark) if found >= 0 else 0


def _after(marks: tuple[str, ...], text: str, low: int, high: int) -> int:
    """Return the end of the last of `marks`, with the closing quotes and the space after it, or 0."""
    cut = max(_found_after(text, mark, low, high) for mark in marks)
    if not cut:
        return 0
    while cut < high and text[cut] in _CLOSERS:
        cut += 1
    return _past_space(text, cut, high)


def _past_space(text: str, position: int, high: int) -> int:
    while position < high and text[position] in _SPACE:
        position += 1
    return position


def _word(text: str, low: int, high: int) -> int:
    return max(_found_after(text, " ", low, high), _found_after(text, "\t", low, high))


def _whole_characters(text: str, start: int, cut: int, limit: int) -> int:
    if is_boundary(text, cut, start):
        return cut
    before = boundary_before(text, cut, start)
    if before > start:
        return before
    return boundary_after(text, cut, limit, start)
