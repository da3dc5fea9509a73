"""Where sentences end, in Chinese and English."""

from __future__ import annotations

import re

from . import lexicon

# 。！？ and their ASCII forms end a sentence; a semicolon joins clauses of one. A cluster (?!, ……。) ends it once.
_END = re.compile(r"[。！？!?]+|\.+|…+")
_CLOSING = "\"'”’」』）)】]》*_"
_LAST_WORD = re.compile(r"[A-Za-z][A-Za-z.]{0,8}\Z")
_NEXT_WORD = re.compile(r"[ \t]*[\"'“‘(]?([A-Za-z]+)")
_LIST_MARK = re.compile(
    r"[ \t>]*(?:[-*•+][ \t]+|[（(]?[0-9]{1,3}[.)、）][ \t]*|[一二三四五六七八九十]{1,3}、|#{1,6}[ \t]+)*"
)


def sentences(text: str) -> list[tuple[int, int]]:
    """Start and end of every sentence, marks of lists and headings left out. Linear in the length of the text.

    A line break ends a sentence, so a list item without a full stop is one. A point inside a number, an address or an
    abbreviation does not, nor does an ellipsis before more of the sentence.
    """
    found: list[tuple[int, int]] = []
    offset = 0
    for line in text.splitlines(keepends=True):
        start = offset + _LIST_MARK.match(line).end()  # pyright: ignore[reportOptionalMemberAccess] - it matches ""
        stop = offset + len(line.rstrip())
        for end in _ends(text, start, stop):
            _add(text, found, start, end)
            start = end
        _add(text, found, start, stop)
        offset += len(line)
    return found


def _ends(text: str, start: int, stop: int) -> list[int]:
    ends: list[int] = []
    for mark in _END.finditer(text, start, stop):
        end = mark.end()
        while end < stop and text[end] in _CLOSING:
            end += 1
        if mark[0][0] in "。！？!?" or _point_ends(text, mark, end, stop):
            ends.append(end)
    return ends


def _point_ends(text: str, mark: re.Match[str], end: int, stop: int) -> bool:
    if end >= stop:
        return True
    following = text[end]
    if len(mark[0]) > 1 or mark[0] == "…":
        # "Wait... no" goes on; "Wait... No" does not; Chinese 等等……好吧 goes on.
        return following.isspace() and text[end:stop].lstrip()[:1].isupper()
    before = text[mark.start() - 1 : mark.start()]
    if not following.isspace():
        return before > "\u2e80" and following > "\u2e80" and following.isalpha()
    next_word = _NEXT_WORD.match(text, end, stop)
    if next_word and next_word[1][0].islower():
        return False
    last = _LAST_WORD.search(text, max(0, mark.start() - 9), mark.start())
    word = last[0].lower() if last else ""
    words = lexicon.words()
    if word in words.abbreviations or (len(word) == 1 and word != "i"):
        return False
    if word in words.abbreviations_before_number:
        return not text[end:stop].lstrip()[:1].isdigit()
    if word in words.abbreviations_or_end:
        return next_word is None or next_word[1].lower() in words.sentence_starters
    return True


def _add(text: str, found: list[tuple[int, int]], start: int, end: int) -> None:
    while start < end and text[start].isspace():
        start += 1
    if any(char.isalnum() for char in text[start:end]):
        found.append((start, end))
