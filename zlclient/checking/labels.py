"""The words beside a fact, by which its distorted copy is recognised: 交付量为40万 and 交付量是386,810."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from . import lexicon
from .text import CJK, alternatives

_REACH = 28
_CHINESE_TAIL = re.compile(f"[{CJK}]{{2,8}}\\Z")
_LATIN_TAIL = re.compile(r"[a-z][a-z'-]{1,20}(?:[ ][a-z][a-z'-]{1,20}){0,2}\Z")
_CHINESE_HEAD = re.compile(f"[ ]?([{CJK}]{{2,6}})")
_LATIN_HEAD = re.compile(r"[ ]?([a-z][a-z'-]{2,20}(?:[ ][a-z][a-z'-]{2,20})?)")


class Label(str):
    """A stretch of lower-case text that touches a fact; `at_left` where it stands before it."""

    __slots__ = ("at_left",)
    at_left: bool

    @classmethod
    def of(cls, text: str, *, at_left: bool) -> Label:
        """A label with its side."""
        label = cls(text)
        label.at_left = at_left
        return label

    def shorter(self) -> Iterator[str]:
        """The label and its shorter forms down to two Chinese characters or one long word, nearest part kept."""
        if not self:
            return
        if self.isascii():
            words = self.split(" ")
            for size in range(len(words), 0, -1):
                part = " ".join(words[-size:] if self.at_left else words[:size])
                if size > 1 or len(part) >= 5:
                    yield part
            return
        for size in sorted({len(self), 6, 4, 3, 2}, reverse=True):
            if size <= len(self):
                yield self[-size:] if self.at_left else self[:size]


@cache
def _filler() -> re.Pattern[str]:
    return re.compile(rf"(?:[ :,，“\"*|]|{alternatives(lexicon.words().fillers)})++\Z")


def label_before(lowered: str, start: int) -> Label:
    """The words right before a fact, without 是, 约, "was" and the like; empty at a clause's start."""
    window = lowered[max(0, start - _REACH) : start]
    if match := _filler().search(window):
        window = window[: match.start()]
    pattern = _CHINESE_TAIL if window[-1:] > "\u2e80" else _LATIN_TAIL
    match = pattern.search(window)
    return Label.of(match[0] if match else "", at_left=True)


def label_after(lowered: str, end: int) -> Label:
    """The words right after a fact."""
    pattern = _CHINESE_HEAD if lowered[end : end + 2].strip()[:1] > "\u2e80" else _LATIN_HEAD
    match = pattern.match(lowered, end)
    return Label.of(match[1] if match else "", at_left=False)
