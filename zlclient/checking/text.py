"""Folding that keeps every offset: one character in, one character out."""

from __future__ import annotations

import re
from functools import cache

# Fullwidth ASCII except the comma: 100，200 is two numbers, while ３８６，８１０ is one (see `_WIDE_THOUSANDS`).
_FOLDS: dict[int, str] = {
    **{0xFF01 + step: chr(0x21 + step) for step in range(94) if step != 0x0B},
    0x3000: " ", 0x00A0: " ", 0x2212: "-", 0xFE63: "-", 0x301C: "~", 0x223C: "~", 0xFFE5: "¥", 0xFFE1: "£", 0x0130: "I",
}  # fmt: skip
_FOLDED = re.compile("[" + "".join(map(re.escape, map(chr, _FOLDS))) + "]")
_WIDE_THOUSANDS = re.compile(r"(?<=[０-９])，(?=[０-９]{3}(?![０-９]))")

CJK = "\u3400-\u4dbf\u4e00-\u9fff"


def fold(text: str) -> str:
    """`text` with fullwidth forms, odd spaces and minus signs in their plain form; offsets stay the same."""
    if text.isascii() or not _FOLDED.search(text):
        return text
    return _WIDE_THOUSANDS.sub(",", text).translate(_FOLDS)


def lower(folded: str) -> str:
    """Lower case of folded text; offsets stay the same, as İ, the one letter that grows, is folded away."""
    return folded.lower()


def share_of_cjk(text: str) -> float | None:
    """Share of Chinese characters among all letters of the first 20,000 characters; None where there is no letter."""
    cjk, latin = len(_CJK_LETTER.findall(text, 0, 20_000)), len(_LATIN_WORD.findall(text, 0, 20_000))
    return cjk / (cjk + latin) if cjk + latin else None


_CJK_LETTER = re.compile(f"[{CJK}]")
_LATIN_WORD = re.compile("[A-Za-z]{2,}")


@cache
def alternatives(words: tuple[str, ...]) -> str:
    """A regular expression body that matches the longest of `words`; Latin words only whole."""
    body = [
        (r"\b" if word[0].isascii() and word[0].isalpha() else "")
        + re.escape(word)
        + (r"(?![A-Za-z0-9])" if word[-1].isascii() and word[-1].isalpha() else "")
        for word in sorted(words, key=lambda word: (-len(word), word))
    ]
    return "(?:" + "|".join(body) + ")"
