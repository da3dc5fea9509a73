"""Where text may be cut without cutting what a reader sees as one character.

Extended grapheme clusters after UAX #29 (Unicode 15), decided from the neighbours of one position. Where the exact rule
needs tables that Python does not carry (Extended_Pictographic, Indic conjuncts), more is held together than the rule
asks: a refused cut costs nothing, a wrong one breaks a character.
"""

from __future__ import annotations

import unicodedata

_ZWJ = "\u200d"
_SPACING = "\u0e33\u0eb3"  # Thai and Lao AM: letters that belong to the one before
_PREPEND = "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\u0d4e\U000110bd\U000110cd"
_VIRAMA = 9  # the canonical combining class of a sign that joins two consonants
_PLAIN = 0x300  # below this only CR LF are held together


def is_boundary(text: str, position: int, low: int = 0) -> bool:
    """Say whether `text` may be cut before `position`; its ends are boundaries, and so is `low`."""
    if position <= low or position >= len(text):
        return True
    before, after = text[position - 1], text[position]
    if before == "\r" and after == "\n":
        return False
    if ord(after) < _PLAIN and ord(before) < _PLAIN:
        return True
    if before in "\r\n" or after in "\r\n":
        return True
    if _extends(after):
        return unicodedata.category(before) in ("Cc", "Zl", "Zp")
    if before == _ZWJ or before in _PREPEND or _joins_consonants(text, position, low):
        return unicodedata.category(after) in ("Cc", "Zl", "Zp")
    if _is_regional(before) and _is_regional(after):
        return _regionals_before(text, position, low) % 2 == 0
    return not _same_syllable(before, after)


def boundary_before(text: str, position: int, low: int) -> int:
    """Return the last boundary in (`low`, `position`], or `low` where there is none."""
    while position > low and not is_boundary(text, position, low):
        position -= 1
    return position


def boundary_after(text: str, position: int, high: int, low: int = 0) -> int:
    """Return the first boundary in [`position`, `high`], or `high`; `low` is a boundary before them."""
    while position < high and not is_boundary(text, position, low):
        position += 1
    return position


def _extends(char: str) -> bool:
    code = ord(char)
    if code == 0x200C or char == _ZWJ or char in _SPACING:
        return True
    if 0x1F3FB <= code <= 0x1F3FF or 0xE0020 <= code <= 0xE007F or code in (0xFF9E, 0xFF9F):
        return True
    return unicodedata.category(char) in ("Mn", "Me", "Mc")


def _joins_consonants(text: str, position: int, low: int) -> bool:
    """Say whether a virama, perhaps with other marks after it, binds the letter at `position` to the one before."""
    if unicodedata.category(text[position]) != "Lo":
        return False
    i = position - 1
    while i >= low and _extends(text[i]):
        if unicodedata.combining(text[i]) == _VIRAMA:
            return True
        i -= 1
    return False


def _is_regional(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _regionals_before(text: str, position: int, low: int) -> int:
    start = position
    while start > low and _is_regional(text[start - 1]):
        start -= 1
    return position - start


def _same_syllable(before: str, after: str) -> bool:
    """Hangul: L before L, V and syllables; V and LV before V and T; T and LVT before T (GB6 to GB8)."""
    left, right = _hangul(before), _hangul(after)
    return (
        (left == "L" and right in ("L", "V", "LV", "LVT"))
        or (left in ("V", "LV") and right in ("V", "T"))
        or (left in ("T", "LVT") and right == "T")
    )


def _hangul(char: str) -> str:
    code = ord(char)
    if 0xAC00 <= code <= 0xD7A3:
        return "LV" if (code - 0xAC00) % 28 == 0 else "LVT"
    if 0x1100 <= code <= 0x115F or 0xA960 <= code <= 0xA97C:
        return "L"
    if 0x1160 <= code <= 0x11A7 or 0xD7B0 <= code <= 0xD7C6:
        return "V"
    if 0x11A8 <= code <= 0x11FF or 0xD7CB <= code <= 0xD7FB:
        return "T"
    return ""
